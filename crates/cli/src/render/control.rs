//! The mode of the installation, and what it withholds.

use slipway_wire::api::{Control, PlanLine, Replica};

use super::table::{facts, rows, time};

pub(crate) fn control(control: &Control, width: Option<u16>) -> String {
    let freeze = control.freeze.as_ref();
    let observing = control.observing.as_ref();
    let replica = |replica: &Replica| {
        let state = match (replica.lapsed, replica.obeys) {
            (true, _) => "silent",
            (false, true) => "obeys",
            (false, false) => "finishing",
        };
        format!("{} {state}", replica.worker)
    };
    let replicas: Vec<_> = control.replicas.iter().map(replica).collect();
    facts(
        vec![
            ("mode", Some(control.mode.clone())),
            ("frozen until", freeze.map(|freeze| time(&freeze.until))),
            ("frozen by", freeze.map(|freeze| freeze.by.clone())),
            ("frozen because", freeze.map(|freeze| freeze.reason.clone())),
            ("observing since", observing.map(|observing| time(&observing.since))),
            ("observing because", observing.map(|observing| observing.reason.clone())),
            ("settled", Some(if control.settled { "yes" } else { "no" }.to_owned())),
            ("replicas", Some(replicas.join(", "))),
            ("public url", control.public_url.clone()),
            ("installation", Some(control.installation_id.clone())),
            ("revision", Some(control.revision.to_string())),
        ],
        width,
    )
}

pub(crate) fn plan(lines: &[PlanLine], width: Option<u16>) -> String {
    let line = |line: &PlanLine| {
        vec![
            line.action.clone(),
            line.handle.clone(),
            line.project.clone(),
            line.phase.clone(),
            time(&line.since),
            line.message.clone(),
            line.resource_id.clone(),
        ]
    };
    let headings = ["WOULD", "HANDLE", "PROJECT", "PHASE", "SINCE", "WHY NOT", "ID"];
    rows(&headings, lines.iter().map(line).collect(), width)
}
