//! The proof of emptiness of a deletion, by pages: a project of ten thousand resources needs
//! no more memory than one of a hundred.

use slipway_core::deletion::record::Deletion;
use slipway_core::deletion::report::{Line, line};
use slipway_core::ids::{DeletionId, ProjectId, ProvisionedResourceId, ResourceId};
use slipway_core::subject::SubjectKind;

use crate::access::authorise::Caller;
use crate::deletion::port::{ReportPage, ReportScope};
use crate::deletion::read;
use crate::ports::store::Page;
use crate::{Context, Error};

/// Resources in one page.
const RESOURCES: u32 = 200;

/// A report that is being read.
#[derive(Debug)]
pub struct Report {
    context: Context,
    pub deletion: Deletion,
    next: Next,
}

#[derive(Debug, Clone, Copy)]
enum Next {
    Resources(ReportScope, Option<ResourceId>),
    Placement(ProjectId),
    End,
}

/// Begins the report of a deletion. It has lines for what a deletion takes down outside; the
/// others are done with their row.
pub async fn report(context: &Context, caller: &Caller, id: DeletionId) -> Result<Report, Error> {
    let deletion = read::deletion(context, caller, id).await?;
    let target = deletion.target.id;
    let scope = match deletion.target.kind {
        SubjectKind::Project => Some(ReportScope::Project(ProjectId::new(target))),
        SubjectKind::Resource => Some(ReportScope::Resource(ResourceId::new(target))),
        SubjectKind::ProvisionedResource => {
            Some(ReportScope::Attempt(ProvisionedResourceId::new(target)))
        }
        _ => None,
    };
    let next = scope.map_or(Next::End, |scope| Next::Resources(scope, None));
    Ok(Report { context: context.clone(), deletion, next })
}

impl Report {
    /// The next lines; `None` after the last. A page may be empty.
    pub async fn next(&mut self) -> Result<Option<Vec<Line>>, Error> {
        let store = &self.context.stores.deletion;
        let made = match self.next {
            Next::End => return Ok(None),
            Next::Resources(scope, after) => {
                let page = Page { after, limit: RESOURCES };
                let ReportPage { made, next } = store.deletion_made(scope, page).await?;
                self.next = match (next, scope) {
                    (Some(next), _) => Next::Resources(scope, Some(next)),
                    (None, ReportScope::Project(project)) => Next::Placement(project),
                    (None, _) => Next::End,
                };
                made
            }
            Next::Placement(project) => {
                self.next = Next::End;
                store.deletion_placement(project).await?
            }
        };
        Ok(Some(made.iter().map(line).collect()))
    }
}
