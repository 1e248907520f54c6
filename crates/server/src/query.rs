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
pub(crate) struct Parameters {
    single: BTreeMap<String, String>,
    labels: Vec<String>,
}

/// The only parameter that may be given several times: all have to hold.
const LABEL: &str = "label";

impl Parameters {
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.single.remove(name)
    }

    /// `label`, which some lists take, any number of times.
    pub(crate) fn take_labels(&mut self) -> Vec<String> {
        std::mem::take(&mut self.labels)
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
        let label = self.labels.first().map(|_| LABEL.to_owned());
        match self.single.into_keys().next().or(label) {
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
        let mut parameters = Self::default();
        for (name, value) in pairs {
            if name == LABEL {
                parameters.labels.push(value);
                continue;
            }
            let shown = clip(&name);
            if parameters.single.insert(name, value).is_some() {
                return Err(Refusal::invalid(shown, "is given twice").into());
            }
        }
        Ok(parameters)
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
        assert_eq!(field(of("label=a").await.unwrap().finish()), "label");
        let mut several = of("label=a&label=b%3Dc").await.unwrap();
        assert_eq!(several.take_labels(), ["a", "b=c"]);
        assert!(several.finish().is_ok());
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
