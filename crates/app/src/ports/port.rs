//! Declares the store port of a domain and, for tests, its interceptor: a
//! decorator that forwards every call to another store, unless it overrides the
//! method. Nobody forwards methods by hand.

/// Declares a port, the kinds whose rows it keeps too, and the trait that
/// intercepts it. Every implementor of the interceptor is a store; its methods
/// forward by default.
macro_rules! port {
    (
        $(#[$doc:meta])*
        pub trait $port:ident $(of ($($of:ty),+))?, intercepted by $interceptor:ident {
            $(
                $(#[$about:meta])*
                async fn $method:ident(&self $(, $name:ident: $kind:ty)* $(,)?) -> $answer:ty;
            )*
        }
    ) => {
        $(#[$doc])*
        #[async_trait::async_trait]
        pub trait $port: std::fmt::Debug + Send + Sync $($(+ $crate::ports::KindStore<$of>)+)? {
            $(
                $(#[$about])*
                async fn $method(&self $(, $name: $kind)*) -> $answer;
            )*
        }

        /// Wraps another store of this domain, for tests.
        #[cfg(feature = "testing")]
        #[async_trait::async_trait]
        pub trait $interceptor: std::fmt::Debug + Send + Sync {
            /// The wrapped store.
            fn inner(&self) -> &dyn $port;

            /// Called before every forwarded method.
            async fn enter(&self) {}

            $(
                async fn $method(&self $(, $name: $kind)*) -> $answer {
                    self.enter().await;
                    self.inner().$method($($name),*).await
                }
            )*
        }

        #[cfg(feature = "testing")]
        #[async_trait::async_trait]
        impl<T: $interceptor $($(+ $crate::ports::KindStore<$of>)+)?> $port for T {
            $(
                async fn $method(&self $(, $name: $kind)*) -> $answer {
                    $interceptor::$method(self $(, $name)*).await
                }
            )*
        }
    };
}
