//! A client for a user of the environment.

use ::kube::config::{KubeConfigOptions, Kubeconfig};
use ::kube::{Client, Config};
use anyhow::Context as _;

use super::environment::KubeEnvironment;

impl KubeEnvironment {
    /// A client of `user`. It belongs to the calling test's runtime: a shared
    /// client would stop working when the first test ends.
    ///
    /// # Panics
    /// When the environment was started without that user.
    pub async fn client(&self, user: &str) -> anyhow::Result<Client> {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig(user))
            .context("the kubeconfig just made is not understood")?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .context("the kubeconfig just made cannot be used")?;
        Client::try_from(config).context("cannot make a client of the test API server")
    }
}
