//! Roll-outs: starting, reading and controlling them, and what the loop does. A kind of
//! member plugs in with how one is found, changed and judged, see [`upgrade`] and [`stack`]; those
//! of other rooms are there.

pub mod control;
pub mod port;
pub mod read;
pub mod run;
pub mod stack;
pub mod start;
pub mod upgrade;
