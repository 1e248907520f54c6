//! Names beside ids: people read names. One statement finds those of a whole page.

use slipway_app::Context;
use slipway_app::access::reference;
use uuid::Uuid;

/// A document that has ids of other things.
pub(crate) trait Referring {
    /// Each of these ids, and where its name goes.
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        Vec::new()
    }
}

/// Adds the names; those that nothing has any more stay out.
pub(crate) async fn add_names<D: Referring>(
    context: &Context,
    documents: &mut [D],
) -> Result<(), slipway_app::Error> {
    let parse = |id: Option<&str>| id.and_then(|id| Uuid::try_parse(id).ok());
    let ids = documents.iter_mut().flat_map(D::references).filter_map(|(id, _)| parse(id));
    let mut ids: Vec<Uuid> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let names = reference::names(context, &ids).await?;
    for (id, name) in documents.iter_mut().flat_map(D::references) {
        *name = parse(id).and_then(|id| names.get(&id).cloned());
    }
    Ok(())
}
