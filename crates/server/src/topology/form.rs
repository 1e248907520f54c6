//! The scale-down as the form of a page sends it: the same use-case and the same answer as
//! `POST /api/v1/…/scale-down`. There is no way around a gate here.

use axum::body::Bytes;
use axum::http::StatusCode;
use slipway_core::error::Refusal;

use super::servers;
use crate::request::{Answered, Call, Segments};

/// The longest form that is read.
const FORM_MAX: usize = 4 << 10;

pub(super) async fn scale_down(
    call: Call,
    Segments([workspace, server]): Segments<2>,
    body: Bytes,
) -> Answered {
    let reason = reason(&body)?;
    servers::leave(&call, (&workspace, &server), reason.as_deref(), StatusCode::ACCEPTED).await
}

/// The one field that the form has.
fn reason(body: &[u8]) -> Result<Option<String>, Refusal> {
    if body.len() > FORM_MAX {
        return Err(Refusal::invalid("reason", "must be shorter"));
    }
    let mut reason = None;
    for (name, value) in form_urlencoded::parse(body) {
        match &*name {
            "reason" => reason = Some(value.into_owned()).filter(|text| !text.is_empty()),
            other => {
                let problem = "is no field of this form; it has `reason`";
                return Err(Refusal::invalid(other, problem));
            }
        }
    }
    Ok(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_a_reason_and_nothing_else() {
        assert_eq!(reason(b"").unwrap(), None);
        assert_eq!(reason(b"reason=").unwrap(), None);
        assert_eq!(reason(b"reason=less+load%21").unwrap().as_deref(), Some("less load!"));
        assert_eq!(reason(b"force=true").unwrap_err().field.as_deref(), Some("force"));
        assert!(reason(&[b'a'; FORM_MAX + 1]).is_err());
    }
}
