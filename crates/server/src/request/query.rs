//! Query strings. The row of a route names its parameters; any other is refused
//! by name instead of ignored.

use std::collections::BTreeMap;
use std::str::FromStr;

use axum::extract::Query;
use axum::http::Uri;
use slipway_app::ports::store::Page;
use slipway_app::ports::store::{PAGE_DEFAULT, PAGE_MAX};
use slipway_core::error::Refusal;
use slipway_core::nearest::nearest;
use slipway_core::subject::SubjectKind;

use crate::error::clip;

/// The parameters of one request.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    single: BTreeMap<String, String>,
    labels: Vec<String>,
}

/// The only parameter that may repeat: all its values have to match.
const LABEL: &str = "label";

/// The two parameters that select a page.
const PAGING: [&str; 2] = ["limit", "cursor"];

impl Parameters {
    /// Refuses parameters that are malformed, repeated, or not known.
    pub(crate) fn parse(uri: &Uri, known: &[&str]) -> Result<Self, Refusal> {
        let malformed = |_| Refusal::invalid("query", "is not a valid query string");
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(malformed)?;
        let mut parameters = Self::default();
        for (name, value) in pairs {
            if name == LABEL {
                parameters.labels.push(value);
                continue;
            }
            let shown = clip(&name);
            if parameters.single.insert(name, value).is_some() {
                return Err(Refusal::invalid(shown, "is given twice"));
            }
        }
        let label = parameters.labels.first().map(|_| LABEL);
        let mut given = parameters.single.keys().map(String::as_str).chain(label);
        match given.find(|name| !known.contains(name)) {
            None => Ok(parameters),
            Some(name) => {
                let problem = match nearest(name, known.iter().copied()) {
                    Some(meant) => {
                        format!("is not a query parameter here; did you mean `{meant}`?")
                    }
                    None => "is not a query parameter here; check its spelling".to_owned(),
                };
                Err(Refusal::invalid(clip(name), problem))
            }
        }
    }

    /// The parameters that have the name of a kind: each names one of it.
    pub(crate) fn references(&mut self) -> impl Iterator<Item = (SubjectKind, &mut String)> {
        let single = self.single.iter_mut();
        single.filter_map(|(name, value)| Some((SubjectKind::parse(name)?, value)))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.single.get(name).map(String::as_str)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.single.get(name).cloned()
    }

    /// `label`, which some lists take any number of times.
    pub(crate) fn labels(&self) -> &[String] {
        &self.labels
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Refusal::invalid(name, "must be `true` or `false`")),
        }
    }

    /// `limit` and `cursor`, which every list takes.
    pub(crate) fn page<C: FromStr>(&self) -> Result<Page<C>, Refusal> {
        let limit = match self.get("limit") {
            None => PAGE_DEFAULT,
            Some(text) => {
                text.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit)).ok_or_else(
                    || Refusal::invalid("limit", format!("must be a number from 1 to {PAGE_MAX}")),
                )?
            }
        };
        let foreign =
            || Refusal::invalid("cursor", "must be one from the `next` link of this list");
        let after = self.get("cursor").map(|text| text.parse().map_err(|_| foreign()));
        Ok(Page { after: after.transpose()?, limit })
    }

    /// All parameters but those that select the page.
    pub(crate) fn filters(&self) -> impl Iterator<Item = (&str, &str)> {
        let single = self.single.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let labels = self.labels.iter().map(|value| (LABEL, value.as_str()));
        single.filter(|(name, _)| !PAGING.contains(name)).chain(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str, known: &[&str]) -> Result<Parameters, Refusal> {
        Parameters::parse(&format!("/x?{query}").parse().unwrap(), known)
    }

    fn field<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> String {
        refused.unwrap_err().field.unwrap()
    }

    #[test]
    fn a_page_has_bounds() {
        let page = of("", &PAGING).unwrap().page::<i64>().unwrap();
        assert_eq!((page.after, page.limit), (None, PAGE_DEFAULT));
        let page = of("limit=3&cursor=17", &PAGING).unwrap().page::<i64>().unwrap();
        assert_eq!((page.after, page.limit), (Some(17), 3));
        for bad in ["limit=0", "limit=501", "limit=x", "limit=-1"] {
            assert_eq!(field(of(bad, &PAGING).unwrap().page::<i64>()), "limit", "{bad}");
        }
        assert_eq!(field(of("cursor=x", &PAGING).unwrap().page::<i64>()), "cursor");
    }

    #[test]
    fn what_nobody_takes_is_named() {
        assert_eq!(field(of("limit=3&colour=red", &PAGING)), "colour");
        assert_eq!(field(of("limit=3&limit=4", &PAGING)), "limit");
        assert_eq!(field(of("label=a", &[])), "label");
        let several = of("label=a&label=b%3Dc", &["label"]).unwrap();
        assert_eq!(several.labels(), ["a", "b=c"]);
        assert!(of("", &[]).is_ok());
    }

    #[test]
    fn a_flag_is_true_or_false() {
        let flag = |query| of(query, &["all"]).unwrap().flag("all");
        assert!(flag("all=true").unwrap());
        assert!(!flag("all=false").unwrap());
        assert!(!flag("").unwrap());
        assert_eq!(field(flag("all=yes")), "all");
    }

    #[test]
    fn filters_are_what_does_not_choose_the_page() {
        let query = of("limit=3&b=1&cursor=2&label=x&a=2", &["limit", "cursor", "a", "b", "label"]);
        let filters: Vec<_> = query.as_ref().unwrap().filters().collect();
        assert_eq!(filters, [("a", "2"), ("b", "1"), ("label", "x")]);
    }
}
