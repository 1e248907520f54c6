//! The environment that all tests of a process share, and what is said where
//! there is none.

use std::env;
use std::io::Write as _;
use std::sync::Once;

use tokio::sync::OnceCell;

use super::environment::{KubeEnvironment, Options};

/// Set to `1`, a test that needs Kubernetes fails where there is none.
pub const REQUIRE_VARIABLE: &str = "SLIPWAY_REQUIRE_KUBE";

/// The environment for `test`, with the controller manager; or `None` where
/// the programs are not there: then the first test of the process to ask has
/// said so on standard error, and a test that gets `None` returns.
///
/// # Panics
/// When there should be one but it cannot be had, and where the programs are
/// not there although [`REQUIRE_VARIABLE`] is `1`.
pub async fn shared(test: &str) -> Option<&'static KubeEnvironment> {
    // A static is never dropped: the keeper takes everything down when this
    // process ends. Nothing in an environment belongs to a runtime, so the
    // tests that come after the one that started it can use it.
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
    /// An environment of its own for `test`, with the rules of [`shared`].
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
        // Not `eprintln!`: the test harness captures that and shows it only
        // for tests that fail. Where standard error is closed nobody reads.
        let _written = writeln!(
            std::io::stderr(),
            "not run: {test}: kube-apiserver or etcd is not there (`cargo xtask test kube` \
             provides them); nor any other test of this process that needs them"
        );
    });
}
