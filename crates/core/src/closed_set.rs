//! Closed sets: an enum whose members have one stable text each, in rows, on
//! the wire and on screen. Parsing is exact; an unknown text is never guessed.

/// Declares a closed set. Exported, because other crates declare their own.
#[macro_export]
macro_rules! closed_set {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|item| item.as_str() == text)
            }

            /// The member that a field of a request names; the refusal names the
            /// nearest, or lists them all.
            pub fn parse_field(field: &str, text: &str) -> Result<Self, $crate::error::Refusal> {
                Self::parse(text).ok_or_else(|| {
                    let all: Vec<_> = Self::ALL.iter().map(|item| item.as_str()).collect();
                    $crate::nearest::not_one_of(field, text, &all)
                })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use closed_set;
