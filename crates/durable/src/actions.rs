//! Who carries out the actions of a loop, and what follows from it for its claims.
//!
//! The loops and the model use these types, so that a loop cannot ship a rule that
//! the model did not check.

/// Who carries out the outside actions of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actions {
    /// The process itself. When it is dead, none of them is under way.
    InProcess,
    /// Another system, by request. A request may take effect after its sender gave up,
    /// lost its claim or died, and after requests that were sent later.
    Remote,
}

/// What a worker that starts does about the claims of its earlier life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlierClaims {
    /// It ends them: the rows are due at once, under a new claim token.
    TakenBack,
    /// It leaves them alone: the rows are due when the leases have ended.
    Lapse,
}

impl Actions {
    /// A lease that is waited for covers every request that takes effect within it: the
    /// next claim observes the effect. A claim that is taken back at once covers none.
    #[must_use]
    pub const fn earlier_claims(self) -> EarlierClaims {
        match self {
            Self::InProcess => EarlierClaims::TakenBack,
            Self::Remote => EarlierClaims::Lapse,
        }
    }
}
