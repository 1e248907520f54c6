//! The environment that all tests of a process share, and the notice that is
//! printed if there is none.

use std::env;
use std::io::Write as _;
use std::sync::Once;

use tokio::sync::OnceCell;

use super::environment::{KubeEnvironment, Options};

/// If set to `1`, a test that needs Kubernetes fails when it is missing.
pub const REQUIRE_VARIABLE: &str = "SLIPWAY_REQUIRE_KUBE";

/// The environment for `test`, with the controller manager; `None` if the
/// programs are missing. Then the first test of the process that asked has
/// printed a notice on standard error, and a test that gets `None` returns.
///
/// # Panics
/// When the environment cannot be started, and when the programs are missing
/// although [`REQUIRE_VARIABLE`] is `1`.
pub async fn shared(test: &str) -> Option<&'static KubeEnvironment> {
    // A static is never dropped: the watchdog takes everything down when this
    // process ends. Nothing in an environment belongs to a runtime, so later
    // tests can use what an earlier one started.
    static ENVIRONMENT: OnceCell<Result<Option<KubeEnvironment>, String>> = OnceCell::const_new();
    let options = Options { controller_manager: true, ..Options::default() };
    let started = ENVIRONMENT.get_or_init(|| async {
        KubeEnvironment::start(options).await.map_err(|error| format!("{error:#}"))
    });
    match started.await {
        Ok(Some(environment)) => Some(environment),
        Ok(None) => {
            report_absence(test);
            None
        }
        Err(error) => panic!("{test}: no Kubernetes for tests: {error}"),
    }
}

impl KubeEnvironment {
    /// An environment of its own for `test`; otherwise as [`shared`].
    ///
    /// # Panics
    /// As [`shared`] does.
    pub async fn for_test(test: &str, options: Options) -> Option<Self> {
        match Self::start(options).await {
            Ok(Some(environment)) => Some(environment),
            Ok(None) => {
                report_absence(test);
                None
            }
            Err(error) => panic!("{test}: no Kubernetes for tests: {error:#}"),
        }
    }
}

fn report_absence(test: &str) {
    assert!(
        env::var(REQUIRE_VARIABLE).as_deref() != Ok("1"),
        "{test}: kube-apiserver or etcd is not there (`cargo xtask test kube` provides them), \
         and {REQUIRE_VARIABLE}=1 forbids going on without them"
    );
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        // Not `eprintln!`: the test harness captures it and shows it only for
        // failed tests. A closed standard error is no reason to fail.
        let _written = writeln!(
            std::io::stderr(),
            "not run: {test}: kube-apiserver or etcd is not there (`cargo xtask test kube` \
             provides them); nor any other test of this process that needs them"
        );
    });
}
