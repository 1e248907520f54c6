//! Evaluates sources to JSON, and finds the fields that cannot be evaluated.

use std::io::{self, Write};

use nickel_lang_core::cache::CacheHub;
use nickel_lang_core::error::{Error, NullReporter};
use nickel_lang_core::eval::cache::CacheImpl;
use nickel_lang_core::eval::value::{Container, EnumVariantData, NickelValue, ValueContentRef};
use nickel_lang_core::eval::{VirtualMachine, VmContext};
use nickel_lang_core::identifier::LocIdent;
use nickel_lang_core::program::FieldPath;
use nickel_lang_core::serialize::{self, ExportFormat, NickelPointer, NickelPointerElem};

use crate::failure::{Exit, Failure};
use crate::faults::Report;
use crate::sources::{Shown, Sources};

/// The longest document. A group of the sample takes 400 bytes, so it has room for 20,000.
const LONGEST_OUTPUT: usize = 8 * 1024 * 1024;

/// Nobody reads more at once.
const MOST_FAULTS: usize = 20;

type Context = VmContext<CacheHub, CacheImpl>;

/// The document as JSON, with a line end.
pub(crate) fn evaluate(sources: Sources) -> Result<Vec<u8>, Failure> {
    let Sources { main, hub, shown } = sources;
    let failed = |error| Report::of(&shown, error).into_failure();
    let mut context = Context::new(hub, io::sink(), NullReporter {});
    let program = context.prepare_eval(main).map_err(failed)?;
    let value = VirtualMachine::new(&mut context).eval_full_for_export(program.clone());
    let value = value.map_err(|error| {
        let mut report = Search::new(&mut context, &shown).search(program);
        if report.count() == 0 {
            report.add(&shown, Error::EvalError(error), None);
        }
        report.into_failure()
    })?;
    serialize::validate(ExportFormat::Json, &value).map_err(|data| {
        let field = data.path.to_string();
        let error = Error::export_error(context.pos_table.clone(), data);
        let mut report = Report::default();
        report.add(&shown, error, Some(&field).filter(|field| !field.is_empty()).map(|f| &**f));
        report.into_failure()
    })?;
    let mut output = Bounded::default();
    let written = serialize::to_writer(&mut output, ExportFormat::Json, &value);
    if output.is_full {
        let limit = LONGEST_OUTPUT / (1024 * 1024);
        let message = format!("the document is longer than {limit} MiB");
        return Err(Failure::new(Exit::Limit, message));
    }
    written.map_err(|data| failed(Error::export_error(context.pos_table.clone(), data)))?;
    output.bytes.push(b'\n');
    Ok(output.bytes)
}

/// Evaluates every field by itself, as a complete evaluation stops at the first error and
/// does not say in which field.
struct Search<'a> {
    machine: VirtualMachine<'a, CacheHub, CacheImpl>,
    shown: &'a Shown,
    path: NickelPointer,
    report: Report,
}

impl<'a> Search<'a> {
    fn new(context: &'a mut Context, shown: &'a Shown) -> Self {
        let machine = VirtualMachine::new(context);
        Self { machine, shown, path: NickelPointer::new(), report: Report::default() }
    }

    fn search(mut self, program: NickelValue) -> Report {
        self.visit(program);
        self.report
    }

    fn visit(&mut self, value: NickelValue) {
        if self.report.count() >= MOST_FAULTS {
            return;
        }
        let position = value.pos_idx();
        let value = match self.machine.eval(value) {
            Ok(value) => value,
            Err(error) => {
                self.machine.reset();
                return self.report_here(Error::EvalError(error));
            }
        };
        match value.content_ref() {
            ValueContentRef::Array(Container::Alloc(array)) => {
                for (index, element) in array.iter_with_pending_contracts(position).enumerate() {
                    self.path.0.push(NickelPointerElem::Index(index));
                    self.visit(element);
                    self.path.0.pop();
                }
            }
            ValueContentRef::Record(Container::Alloc(record)) => {
                for (name, field) in &record.fields {
                    let element = NickelPointerElem::Field(name.ident());
                    if field.metadata.not_exported() || field.is_empty_optional() {
                        continue;
                    }
                    self.path.0.push(element);
                    match field.value_with_pending_contracts() {
                        Some(value) => self.visit(value),
                        None => self.visit_missing(value.clone(), *name),
                    }
                    self.path.0.pop();
                }
            }
            ValueContentRef::EnumVariant(EnumVariantData { arg: Some(argument), .. }) => {
                self.visit(argument.clone());
            }
            _ => {}
        }
    }

    /// Reading a field without a value has the error that says so.
    fn visit_missing(&mut self, record: NickelValue, name: LocIdent) {
        let path = FieldPath(vec![name]);
        if let Err(error) = self.machine.extract_field_value_closure(record.into(), &path) {
            self.machine.reset();
            self.report_here(Error::EvalError(error));
        }
    }

    fn report_here(&mut self, error: Error) {
        let field = self.path.to_string();
        self.report.add(self.shown, error, Some(&*field).filter(|field| !field.is_empty()));
    }
}

/// Keeps what fits.
#[derive(Debug, Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() >= LONGEST_OUTPUT {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
