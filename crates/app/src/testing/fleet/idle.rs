//! An agent for which nothing changes, so that the statements of its polls can be counted.

use crate::access::authenticate;
use crate::fleet::{agents, links, offers};
use crate::ports::Stores;
use crate::testing::world::World;

use super::client::{Client, admin};

/// See the module.
#[derive(Debug)]
pub struct IdleAgent {
    client: Client,
    id: slipway_core::ids::AgentId,
    key: slipway_core::secret::Secret,
    tag: String,
}

impl IdleAgent {
    /// An agent that has so many stacks deployed.
    pub async fn new(stores: Stores, stacks: usize) -> Self {
        let client = Client::new(&World::new(stores).await);
        let generator = client.generator().await;
        let (first, _) = client.deployed(generator).await;
        let id = client.agent_of(generator, first).await;
        for _ in 1..stacks {
            let (stack, _) = client.deployed(generator).await;
            links::target(&client.context, &admin(), id, stack).await.expect("a target");
        }
        let key = agents::key(&client.context, &admin(), id).await.expect("a key");
        assert_eq!(client.poll(id).await.len(), stacks);
        let offer = offers::offer(&client.context, &admin(), id).await.expect("an offer");
        Self { tag: offer.tag(), client, id, key }
    }

    /// Polls as a request with its key does; with contents if it does not know the tag.
    pub async fn poll(&self, knows_tag: bool) {
        let context = &self.client.context;
        let caller = authenticate::api_key(context, self.key.expose(), "idle").await;
        let offer = offers::offer(context, &caller.expect("its key"), self.id).await;
        let offer = offer.expect("an offer");
        assert_eq!(offer.tag(), self.tag, "nothing changed");
        if !knows_tag {
            assert!(!offer.objects(context).await.expect("contents").is_empty());
        }
    }
}
