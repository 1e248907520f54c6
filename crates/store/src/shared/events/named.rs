//! What subscriptions are called.

macro_rules! subscription_names {
    () => {
        names_of!("event_subscriptions d", "d.name")
    };
}
pub(crate) use subscription_names;
