//! Reads a file and everything that it imports before anything is evaluated.
//!
//! An import of Nickel names its file by a literal, so the files that an evaluation
//! needs are known from their syntax. They go to Nickel as sources in memory under the
//! paths that it will ask for: the root is `/` there. Nickel then reads no file, and the
//! evaluator takes away its right to open one ([`crate::evaluator`]), so that an import
//! that this module overlooks fails instead of being read.

use std::path::{Component, Path, PathBuf};

use nickel_lang_core::ast::{Ast, AstAlloc, Import, InputFormat, Node};
use nickel_lang_core::cache::{CacheHub, SourcePath};
use nickel_lang_core::error::Error;
use nickel_lang_core::files::{FileId, Files};
use nickel_lang_core::position::TermPos;
use nickel_lang_core::stdlib;
use nickel_lang_core::traverse::{TraverseAlloc as _, TraverseControl};

use crate::failure::{Exit, Failure, Fault};
use crate::faults::{self, Report};
use crate::folder::{Folder, ReadError};
use crate::schema;

/// All sources of one evaluation.
pub(crate) struct Sources {
    pub(crate) main: FileId,
    pub(crate) hub: CacheHub,
    pub(crate) shown: Shown,
}

/// The same sources under the names that people know. File ids count up, so they are
/// the same in both.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) files: Files,
    /// Those of the folder, rather than of this program.
    pub(crate) own: Vec<FileId>,
}

/// An import, and where it is written.
struct FoundImport {
    /// As it is written.
    import: PathBuf,
    /// Relative to the root.
    path: PathBuf,
    format: InputFormat,
    by: TermPos,
}

impl Sources {
    /// Reads the file at `path`, which is relative to `folder`, and what it imports.
    pub(crate) fn read(folder: &Folder, path: &Path) -> Result<Self, Failure> {
        let text = folder.read(path).map_err(|error| {
            Failure::new(
                error.exit(Exit::Usage),
                format!("cannot read {}: {error}", path.display()),
            )
        })?;
        let mut hub = CacheHub::new();
        let shown = Shown {
            files: Files::new(stdlib::modules().map(|m| (m.file_name(), m.content()))),
            own: Vec::new(),
        };
        let main = hub.sources.add_string(in_memory(path, InputFormat::Nickel), text.clone());
        let mut sources = Self { main, hub, shown };
        sources.show_own(path, text);

        let mut unread = sources.imports_of(main, path)?;
        while let Some(import) = unread.pop() {
            if let Some(id) = sources.add(folder, &import)? {
                unread.extend(sources.imports_of(id, &import.path)?);
            }
        }
        Ok(sources)
    }

    /// `None` if there is nothing in it to follow.
    fn add(&mut self, folder: &Folder, found: &FoundImport) -> Result<Option<FileId>, Failure> {
        let FoundImport { import, path, format, by } = found;
        let source = in_memory(path, *format);
        if self.hub.sources.file_ids.contains_key(&source) {
            return Ok(None);
        }
        let text = match folder.read(path) {
            Ok(text) => {
                self.show_own(path, text.clone());
                text
            }
            Err(error) => {
                let Some(text) = schema::text(import).filter(|_| error.is_missing()) else {
                    return Err(self.unreadable(path, *by, &error));
                };
                self.shown.files.add(Path::new("<slipway-nickel>").join(import), text);
                text.to_owned()
            }
        };
        let id = self.hub.sources.add_string(source, text);
        Ok((*format == InputFormat::Nickel).then_some(id))
    }

    fn show_own(&mut self, path: &Path, text: String) {
        let id = self.shown.files.add(path, text);
        self.shown.own.push(id);
    }

    fn unreadable(&self, path: &Path, by: TermPos, error: &ReadError) -> Failure {
        let exit = error.exit(Exit::Evaluation);
        self.refuse(exit, by, format!("cannot import {}: {error}", path.display()))
    }

    fn refuse(&self, exit: Exit, by: TermPos, message: String) -> Failure {
        let start = by.into_opt().map(|span| (span.src_id, usize::from(span.start)));
        let fault = Fault { message, ..faults::locate(&self.shown, start) };
        let location = match &fault {
            Fault { file: Some(file), line: Some(line), column: Some(column), .. } => {
                format!("{file}:{line}:{column}: ")
            }
            _ => String::new(),
        };
        Failure::at(exit, format!("error: {location}{}\n", fault.message), vec![fault])
    }

    /// The imports that are written in a file of Nickel.
    fn imports_of(&self, id: FileId, path: &Path) -> Result<Vec<FoundImport>, Failure> {
        let syntax = AstAlloc::new();
        let tree =
            self.hub.sources.parse_nickel(&syntax, id).map_err(|errors| {
                Report::of(&self.shown, Error::ParseErrors(errors)).into_failure()
            })?;
        // The arena outlives the tree.
        let tree: &Ast<'_> = syntax.alloc(tree);
        let mut imports = Vec::new();
        let refusal = tree.traverse_ref(
            &mut |ast: &Ast<'_>, (): &()| match &ast.node {
                Node::Import(import) => match self.resolve_import(import, path, ast.pos) {
                    Ok(found) => {
                        imports.push(found);
                        TraverseControl::Continue
                    }
                    Err(failure) => TraverseControl::Return(failure),
                },
                _ => TraverseControl::Continue,
            },
            &(),
        );
        refusal.map_or(Ok(imports), Err)
    }

    fn resolve_import(
        &self,
        import: &Import<'_>,
        path: &Path,
        by: TermPos,
    ) -> Result<FoundImport, Failure> {
        match import {
            Import::Path { path: imported, format } => {
                let imported = Path::new(imported);
                let path = resolve(path, imported).ok_or_else(|| {
                    let message = format!(
                        "cannot import {}: it is outside of the folder; \
                         imports are relative and stay in the folder",
                        imported.display()
                    );
                    self.refuse(Exit::Outside, by, message)
                })?;
                Ok(FoundImport { import: imported.to_owned(), path, format: *format, by })
            }
            Import::Package { id } => {
                let message = format!("cannot import the package {id}: import a file instead");
                Err(self.refuse(Exit::Evaluation, by, message))
            }
        }
    }
}

/// Where Nickel looks for the file at `path`.
fn in_memory(path: &Path, format: InputFormat) -> SourcePath {
    SourcePath::Path(Path::new("/").join(path), format)
}

/// The path of what the file at `path` imports as `imported`, both relative to the
/// root. Nickel joins and shortens them in the same way, without a look at the disk.
fn resolve(path: &Path, imported: &Path) -> Option<PathBuf> {
    let mut resolved = path.parent().map(Path::to_owned).unwrap_or_default();
    for component in imported.components() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !resolved.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(resolved)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::resolve;

    #[test]
    fn an_import_is_relative_to_the_file_and_stays_below_the_root() {
        let resolved = |path: &str, imported: &str| resolve(Path::new(path), Path::new(imported));
        assert_eq!(resolved("a/b.ncl", "c.ncl"), Some(PathBuf::from("a/c.ncl")));
        assert_eq!(resolved("a/b.ncl", "./../c/d.ncl"), Some(PathBuf::from("c/d.ncl")));
        assert_eq!(resolved("a/b.ncl", "../../c.ncl"), None);
        assert_eq!(resolved("b.ncl", "../b.ncl"), None);
        assert_eq!(resolved("b.ncl", "/b.ncl"), None);
    }
}
