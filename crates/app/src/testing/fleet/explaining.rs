//! What explanations say about stacks, agents and generators.

use serde_json::Value;
use slipway_core::operations::explanation::Explanation;

use super::client::{Client, admin};
use crate::fleet::{links, reports, tags};
use crate::operations::explain;

async fn explained(client: &Client, kind: &str, id: impl ToString) -> Explanation {
    let found = explain::explain(&client.context, &admin(), kind, &id.to_string()).await;
    found.expect("an explanation")
}

/// The state of each part, by name in their order.
fn states(found: &Explanation) -> Vec<&str> {
    found.parts.iter().map(|part| part.state.as_str()).collect()
}

/// Who has what, who is behind and why, from all three sides and never with content.
pub(super) async fn an_explanation_says_who_has_what_and_why_not(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, first) = client.deployed(generator).await;
    let alone = explained(client, "stack", stack).await;
    assert!(alone.waiting_for.expect("an agent").contains("an agent"), "{:?}", alone.parts);

    let current = client.agent_of(generator, stack).await;
    let failing = client.agent_of(generator, stack).await;
    let never = client.agent_of(generator, stack).await;
    let untargeted = client.agent().await;
    links::register(context, &admin(), untargeted, generator).await.expect("consent");
    let unregistered = client.agent().await;
    for owner in [unregistered.into(), stack.into()] {
        tags::add_label(context, &admin(), owner, "explained").await.expect("a label");
    }
    for agent in [current, failing] {
        reports::heartbeat(context, &admin(), agent, (None, None)).await.expect("a heartbeat");
        assert_eq!(client.offered(agent).await, [first]);
        client.report(agent, first, "SUCCESS").await.expect("a report");
    }
    let second = client.submit(stack, "hidden-word").await.expect("an object");
    assert_eq!(client.offered(failing).await, [second]);
    client.report(failing, second, "FAILURE").await.expect("a report");
    let found = explained(client, "stack", stack).await;
    let expected = ["failed", "behind", "not offered yet", "not registered", "not targeted"];
    assert_eq!(states(&found), expected, "{:#?}", found.parts);
    assert_eq!(found.facts["agents"]["behind"], 1);
    let whys: Vec<_> =
        found.parts.iter().map(|part| part.about.clone().unwrap_or_default()).collect();
    assert!(whys[1].contains("has not asked since"), "{whys:?}");
    assert!(whys[2].contains("never been heard of"), "{whys:?}");
    assert!(!format!("{found:?}").contains("hidden-word"));

    let of_agent = explained(client, "agent", never).await;
    assert_eq!(
        (of_agent.state.as_str(), states(&of_agent)),
        ("active, but never heard of", vec!["not offered yet"])
    );
    assert_eq!(states(&explained(client, "agent", current).await), ["behind"]);
    assert_eq!(client.offered(current).await, [second]);
    client.report(current, second, "SUCCESS").await.expect("a report");
    assert_eq!(states(&explained(client, "agent", current).await), ["current"]);

    let of_generator = explained(client, "generator", generator).await;
    assert_eq!(of_generator.facts["stacks"], Value::from(1));
    let about = of_generator.parts[0].about.clone().unwrap_or_default();
    assert!(about.contains("2 of 2 agents") && about.contains("1 failed"), "{about}");

    // After its deletion it is told who still has to remove it.
    client.delete_stack(stack).await.expect("a deletion");
    let gone = explained(client, "stack", stack).await;
    assert_eq!((gone.state.as_str(), states(&gone)), ("deleted", vec!["removing", "removing"]));
    for owed in client.offered(current).await {
        client.report(current, owed, "SUCCESS").await.expect("a report");
    }
    assert_eq!(states(&explained(client, "stack", stack).await), ["removing"]);
    let about = &explained(client, "generator", generator).await.parts[0];
    assert!(
        about.about.as_deref().is_some_and(|text| text.starts_with("1 agent still")),
        "{about:?}"
    );
}
