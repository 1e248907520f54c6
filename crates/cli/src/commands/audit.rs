//! `slipway audit …`.

use super::run::Session;
use crate::arguments::{AuditCommand, AuditFilterArguments};
use crate::error::Error;
use crate::render;

pub(super) async fn run(session: &mut Session<'_>, command: AuditCommand) -> Result<(), Error> {
    match command {
        AuditCommand::List(arguments) => {
            let limit = arguments.page.limit;
            let listed = session.client.audit_list(&arguments.filter, limit).await?;
            session.show_list(&listed, render::audit);
            Ok(())
        }
        AuditCommand::Export(filter) => export(session, &filter).await,
    }
}

/// Whole lines as they come, whatever the pieces are. An export that breaks off
/// is an error, so a script does not take half of it for all.
async fn export(session: &mut Session<'_>, filter: &AuditFilterArguments) -> Result<(), Error> {
    let mut stream = session.client.audit_export(filter).await?;
    let mut rest = Vec::new();
    while let Some(piece) = session.client.next_piece(&mut stream).await? {
        rest.extend_from_slice(piece.as_ref());
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { continue };
        let lines: Vec<u8> = rest.drain(..=end).collect();
        session.terminal.print(String::from_utf8_lossy(&lines).trim_end_matches('\n'));
        if session.terminal.is_closed() {
            return Ok(());
        }
    }
    if rest.is_empty() {
        return Ok(());
    }
    Err(session.client.unreadable("the export ends within a line".to_owned()))
}
