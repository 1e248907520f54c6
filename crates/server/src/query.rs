//! Query strings, taken apart by name. Each handler takes what it knows and
//! then says that it is done, so a parameter that nobody knows is refused and
//! named instead of ignored.

use std::collections::BTreeMap;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use slipway_app::ports::store::Page;
use slipway_app::usecases::read::{PAGE_DEFAULT, PAGE_MAX};
use slipway_core::error::Refusal;

use crate::error::{Rejection, clip};

/// The parameters that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    pub(crate) fn take_flag(&mut self, name: &str) -> Result<bool, Refusal> {
        match self.take(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Refusal::invalid(name, "must be `true` or `false`")),
        }
    }

    /// `limit` and `cursor`, which every list takes.
    pub(crate) fn take_page<C: FromStr>(&mut self) -> Result<Page<C>, Refusal> {
        let limit = match self.take("limit") {
            None => PAGE_DEFAULT,
            Some(text) => {
                text.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit)).ok_or_else(
                    || Refusal::invalid("limit", format!("must be a number from 1 to {PAGE_MAX}")),
                )?
            }
        };
        let after = self
            .take("cursor")
            .map(|text| {
                text.parse().map_err(|_| {
                    Refusal::invalid("cursor", "must be one from the `next` link of this list")
                })
            })
            .transpose()?;
        Ok(Page { after, limit })
    }

    /// Refuses what is left.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(Refusal::invalid(
                clip(&name),
                "is not a query parameter here; check its spelling",
            )),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Rejection> {
        let malformed = || Refusal::invalid("query", "is not a valid query string");
        let Query(pairs) =
            Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).map_err(|_| malformed())?;
        let mut parameters = BTreeMap::new();
        for (name, value) in pairs {
            let shown = clip(&name);
            if parameters.insert(name, value).is_some() {
                return Err(Refusal::invalid(shown, "is given twice").into());
            }
        }
        Ok(Self(parameters))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;

    use super::*;

    async fn of(query: &str) -> Result<Parameters, Refusal> {
        let request = Request::get(format!("/x?{query}")).body(Body::empty()).unwrap();
        let (mut parts, _) = request.into_parts();
        Parameters::from_request_parts(&mut parts, &()).await.map_err(|rejection| rejection.refusal)
    }

    fn field<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> String {
        refused.unwrap_err().field.unwrap()
    }

    #[tokio::test]
    async fn a_page_has_bounds() {
        let page = of("").await.unwrap().take_page::<i64>().unwrap();
        assert_eq!((page.after, page.limit), (None, PAGE_DEFAULT));
        let page = of("limit=3&cursor=17").await.unwrap().take_page::<i64>().unwrap();
        assert_eq!((page.after, page.limit), (Some(17), 3));
        for bad in ["limit=0", "limit=501", "limit=x", "limit=-1"] {
            assert_eq!(field(of(bad).await.unwrap().take_page::<i64>()), "limit", "{bad}");
        }
        assert_eq!(field(of("cursor=x").await.unwrap().take_page::<i64>()), "cursor");
    }

    #[tokio::test]
    async fn what_nobody_takes_is_named() {
        let mut parameters = of("limit=3&colour=red").await.unwrap();
        parameters.take_page::<i64>().unwrap();
        assert_eq!(field(parameters.finish()), "colour");
        assert_eq!(field(of("limit=3&limit=4").await), "limit");
        assert!(of("").await.unwrap().finish().is_ok());
    }

    #[tokio::test]
    async fn a_flag_is_true_or_false() {
        assert!(of("all=true").await.unwrap().take_flag("all").unwrap());
        assert!(!of("all=false").await.unwrap().take_flag("all").unwrap());
        assert!(!of("").await.unwrap().take_flag("all").unwrap());
        assert_eq!(field(of("all=yes").await.unwrap().take_flag("all")), "all");
    }
}
