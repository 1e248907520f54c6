//! Extractors that handlers use instead of raw requests. A refusal names the
//! field and, in a body, line and column. The guard authenticates the caller
//! before any extractor runs, so nobody without a key makes us read a body.

use std::io::Read as _;
use std::str::FromStr;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use flate2::bufread::GzDecoder;
use serde::de::DeserializeOwned;
use serde_json::json;
use slipway_app::access::reference;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::InvalidId;
use slipway_core::operations::reference::unknown;
use slipway_core::subject::SubjectKind;
use slipway_wire::parse::{Fault, parse};
use tokio::time::timeout;
use uuid::Uuid;

use crate::error::{Rejection, clip};
use crate::routes::Admitted;
use crate::state::ServerState;

/// Longest body, also once it is unpacked. A declaration with the most labels (64 of 63 and 256
/// characters) is under 100 KiB; parameters may be long texts.
pub(crate) const BODY_LIMIT: usize = 1 << 20;

/// How long a body of that length may take to arrive; a longer one may take
/// longer. So it requires 100 KiB a second; a declaration is a few packets. The
/// limit is for the whole body and not between two packets: a byte a second is
/// no progress.
const BODY_TIME: Duration = Duration::from_secs(10);

/// The value of `Authorization: Bearer …`, or of `Authorization: …` without a scheme, as
/// clients of Fleet's protocol send it.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let Some((scheme, value)) = text.split_once(' ') else { return Some(text) };
    scheme.eq_ignore_ascii_case("bearer").then_some(value.trim())
}

/// The `{id}` of the path: an id, the beginning of one, or a name.
#[derive(Debug)]
pub(crate) struct Id<T>(pub(crate) T);

impl<T: FromStr<Err = InvalidId>> FromRequestParts<ServerState> for Id<T> {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> Result<Self, Rejection> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Refusal::invalid("id", "is not readable text"))?;
        let invalid = |error: InvalidId| Refusal::from(error).at("id");
        let error = match text.parse::<T>() {
            Ok(id) => return Ok(Self(id)),
            Err(error) => error,
        };
        let Some(kind) = SubjectKind::parse(error.kind) else { return Err(invalid(error).into()) };
        let found = find(parts, state, kind, &text).await?;
        let found = found.ok_or_else(|| unknown(kind, &text))?;
        Ok(Self(found.to_string().parse().map_err(invalid)?))
    }
}

/// The parameters of the path, in order, as texts: names or ids.
#[derive(Debug)]
pub(crate) struct Segments<const N: usize>(pub(crate) [String; N]);

impl<const N: usize> FromRequestParts<ServerState> for Segments<N> {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> Result<Self, Rejection> {
        let unreadable = || Refusal::invalid("path", "is not readable text");
        let Path(pairs) = Path::<Vec<(String, String)>>::from_request_parts(parts, state)
            .await
            .map_err(|_| unreadable())?;
        let mut segments = Vec::with_capacity(pairs.len());
        for (parameter, text) in pairs {
            segments.push(segment(parts, state, &parameter, text).await?);
        }
        Ok(Self(segments.try_into().map_err(|_| unreadable())?))
    }
}

/// The whole id for the beginning of one, where the parameter has the name of its kind. A
/// credential is found by its name here: the store does not.
async fn segment(
    parts: &Parts,
    state: &ServerState,
    parameter: &str,
    text: String,
) -> Result<String, Rejection> {
    let admitted = parts.extensions.get::<Admitted>();
    match (SubjectKind::parse(parameter), admitted) {
        (Some(kind @ SubjectKind::Credential), _) if Uuid::try_parse(&text).is_err() => {
            Ok(find(parts, state, kind, &text).await?.map_or(text, |found| found.to_string()))
        }
        (Some(kind), Some(Admitted { caller, .. })) => {
            Ok(reference::full_id(&state.context, caller, parameter, kind, text).await?)
        }
        _ => Ok(text),
    }
}

async fn find(
    parts: &Parts,
    state: &ServerState,
    kind: SubjectKind,
    text: &str,
) -> Result<Option<Uuid>, Rejection> {
    // The guard put it there.
    let Some(admitted) = parts.extensions.get::<Admitted>() else { return Ok(None) };
    Ok(reference::find(&state.context, &admitted.caller, kind, text).await?)
}

/// A JSON body.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T, S> FromRequest<S> for Body<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Rejection;

    async fn from_request(request: Request, _: &S) -> Result<Self, Rejection> {
        check_media_type(request.headers())?;
        let bytes = read_body(request).await?;
        Ok(Self(parse_json(&bytes)?))
    }
}

pub(crate) fn check_media_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(given) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let given = given.to_str().unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    Err(Refusal::invalid(
        "content-type",
        format!("is `{}`; send the body as application/json", clip(&essence)),
    ))
}

/// The whole body, unpacked; refused as soon as it is too long or too slow.
pub(crate) async fn read_body(request: Request) -> Result<Vec<u8>, Refusal> {
    read_body_up_to(request, BODY_LIMIT).await
}

/// The same with another limit.
pub(crate) async fn read_body_up_to(request: Request, limit: usize) -> Result<Vec<u8>, Refusal> {
    let gzip = is_gzip(request.headers())?;
    let announced = request.headers().get(CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let time = BODY_TIME.mul_f64((limit as f64 / BODY_LIMIT as f64).max(1.0));
    match timeout(time, to_bytes(request.into_body(), limit)).await {
        Ok(Ok(bytes)) if gzip => unpack(&bytes, limit),
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(error)) if is_length_limit(&error) => Err(too_large(limit)),
        Ok(Err(_)) => {
            Err(Refusal::new(ErrorKind::InvalidInput, "the body was cut off; send it again"))
        }
        Err(_) => Err(Refusal::new(
            ErrorKind::RequestTimeout,
            format!("the body did not arrive within {time:?}; send it again, and faster"),
        )),
    }
}

fn too_large(limit: usize) -> Refusal {
    Refusal::new(
        ErrorKind::PayloadTooLarge,
        format!("the body is longer than {limit} bytes; send less"),
    )
}

/// Whether the body is gzip; any other encoding is refused.
fn is_gzip(headers: &HeaderMap) -> Result<bool, Refusal> {
    let mut given = headers.get_all(CONTENT_ENCODING).iter();
    let first = given.next().map(|value| value.to_str().unwrap_or("unreadable").trim());
    let one = first.filter(|_| given.next().is_none());
    match one.map(str::to_ascii_lowercase).as_deref() {
        Some("gzip" | "x-gzip") => Ok(true),
        Some("" | "identity") => Ok(false),
        None if first.is_none() => Ok(false),
        _ => Err(Refusal::new(
            ErrorKind::EncodingUnsupported,
            format!(
                "the body has the content encoding `{}`; send it as gzip, or without an encoding",
                clip(one.unwrap_or("several"))
            ),
        )
        .at("content-encoding")),
    }
}

/// What is unpacked at a time. A power of two as the limit is, so that a body that grows by
/// doubling never holds more than the limit.
const CHUNK: usize = 1 << 13;

/// Unpacks one gzip member. Refuses before it would hold more than the limit, so what a
/// small body claims to be costs no more than a large body. More than one member is refused:
/// nobody sends that, and each would cost a fresh decoder.
fn unpack(packed: &[u8], limit: usize) -> Result<Vec<u8>, Refusal> {
    let mut unpacked = Vec::with_capacity(CHUNK);
    if packed.is_empty() {
        return Ok(unpacked);
    }
    let (mut decoder, mut chunk) = (GzDecoder::new(packed), [0; CHUNK]);
    loop {
        match decoder.read(&mut chunk) {
            Ok(0) if decoder.get_ref().is_empty() => return Ok(unpacked),
            Ok(length @ 1..) if unpacked.len() + length > limit => return Err(too_large(limit)),
            Ok(length @ 1..) => unpacked.extend_from_slice(&chunk[..length]),
            _ => {
                return Err(Refusal::new(
                    ErrorKind::InvalidInput,
                    "the body is not one complete gzip stream; send it again, or without an encoding",
                )
                .at("content-encoding"));
            }
        }
    }
}

/// The type of this cause is private to a crate below axum; its text is not.
fn is_length_limit(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.to_string() == "length limit exceeded" {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Parses a document; a refusal names every field that does not fit, and the
/// position of the first.
pub(crate) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    let faults = match parse::<T>(bytes) {
        Ok(parsed) => return Ok(parsed),
        Err(faults) => faults,
    };
    Refusal::all(faults.into_iter().map(refuse_json))?;
    Err(Refusal::new(ErrorKind::InvalidInput, "the body is not what is expected here"))
}

fn refuse_json(Fault { field, problem, position }: Fault) -> Refusal {
    let field = field.map(|field| clip(&field));
    let subject = field.as_ref().map_or("the body".to_owned(), |field| format!("`{field}`"));
    let mut message = format!("{subject} is not what is expected here: {problem}");
    if let Some((line, column)) = position {
        message = format!("{message}, at line {line}, column {column}");
    }
    let mut refusal = Refusal::new(ErrorKind::InvalidInput, message);
    refusal.field = field;
    match position {
        Some((line, column)) => refusal.with(json!({ "line": line, "column": column })),
        None => refusal,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use slipway_wire::broker::DeclareResource;

    use super::*;

    fn refused(text: &str) -> Refusal {
        parse_json::<DeclareResource>(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn malformed_json_names_line_and_column() {
        let refusal = refused("{\n  \"handle\": \"a\",\n  oops\n}");
        assert_eq!(refusal.kind, ErrorKind::InvalidInput);
        assert_eq!(refusal.details, Some(json!({ "line": 3, "column": 3 })));
        assert!(refusal.message.contains("line 3, column 3"), "{}", refusal.message);
    }

    #[test]
    fn the_field_at_fault_is_named() {
        let table = [
            (r#"{"handle":"a","blueprint":"b","colour":"red"}"#, "colour"),
            (r#"{"handle":"a"}"#, "blueprint"),
            (r#"{"handle":7,"blueprint":"b"}"#, "handle"),
            (r#"{"handle":"a","handle":"b","blueprint":"b"}"#, "handle"),
            (r#"{"handle":"a","blueprint":"b","labels":{"k":1}}"#, "labels.k"),
        ];
        for (text, field) in table {
            assert_eq!(refused(text).field.as_deref(), Some(field), "{text}");
        }
    }

    #[test]
    fn what_follows_the_document_is_refused() {
        let refusal = refused(r#"{"handle":"a","blueprint":"b"} {}"#);
        assert!(refusal.message.contains("trailing characters"), "{}", refusal.message);
        assert!(refused("").message.contains("line 1, column 0"));
    }

    #[test]
    fn a_bearer_is_found_whatever_the_case_of_its_scheme() {
        let headers = |text: &str| HeaderMap::from_iter([(AUTHORIZATION, text.parse().unwrap())]);
        assert_eq!(bearer(&headers("Bearer abc")), Some("abc"));
        assert_eq!(bearer(&headers("bearer  abc ")), Some("abc"));
        assert_eq!(bearer(&headers("Basic abc")), None);
        assert_eq!(bearer(&headers("abc")), Some("abc"), "as clients of Fleet send it");
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[tokio::test]
    async fn a_long_body_is_refused_announced_or_not() {
        for announced in [true, false] {
            let body = vec![b' '; BODY_LIMIT + 1];
            let mut request = Request::post("/x");
            if announced {
                request = request.header(CONTENT_LENGTH, body.len());
            }
            let request = request.body(body.into()).unwrap();
            let refusal = read_body(request).await.unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::PayloadTooLarge, "announced: {announced}");
        }
        let request = Request::post("/x").body(vec![b' '; BODY_LIMIT].into()).unwrap();
        assert_eq!(read_body(request).await.unwrap().len(), BODY_LIMIT);
    }

    fn packed(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    async fn read_as(encoding: &str, body: Vec<u8>) -> Result<Vec<u8>, ErrorKind> {
        let request = Request::post("/x").header(CONTENT_ENCODING, encoding);
        let request = request.body(body.into()).unwrap();
        read_body(request).await.map_err(|refusal| refusal.kind)
    }

    #[tokio::test]
    async fn gzip_is_unpacked_within_the_limit() {
        for encoding in ["gzip", "GZIP", "x-gzip"] {
            assert_eq!(read_as(encoding, packed(b"{}")).await.unwrap(), b"{}", "{encoding}");
        }
        assert_eq!(read_as("gzip", Vec::new()).await.unwrap(), b"");
        assert_eq!(read_as("identity", b"{}".to_vec()).await.unwrap(), b"{}");
        let most = vec![b' '; BODY_LIMIT];
        let whole = read_as("gzip", packed(&most)).await.unwrap();
        assert_eq!(whole.len(), BODY_LIMIT);
        assert!(whole.capacity() <= BODY_LIMIT, "it holds {} bytes", whole.capacity());
        // A kibibyte that would unpack to a mebibyte and a byte, and 64 KiB that would to
        // 64 MiB.
        for bomb in [most.len() + 1, 64 * most.len()] {
            let bomb = packed(&vec![b' '; bomb]);
            assert!(bomb.len() < BODY_LIMIT / 10);
            assert_eq!(read_as("gzip", bomb).await, Err(ErrorKind::PayloadTooLarge));
        }
    }

    #[tokio::test]
    async fn what_is_no_gzip_stream_is_refused() {
        let whole = packed(br#"{"handle":"a"}"#);
        for length in 1..whole.len() {
            let cut = whole[..length].to_vec();
            assert_eq!(read_as("gzip", cut).await, Err(ErrorKind::InvalidInput), "{length}");
        }
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1;
        let twice = [whole.clone(), whole.clone()].concat();
        for bad in [damaged, twice, b"{}".to_vec()] {
            assert_eq!(read_as("gzip", bad).await, Err(ErrorKind::InvalidInput));
        }
        for other in ["br", "deflate", "gzip, gzip", "\u{e9}"] {
            let refused = read_as(other, whole.clone()).await;
            assert_eq!(refused, Err(ErrorKind::EncodingUnsupported), "{other}");
        }
    }

    #[test]
    fn another_media_type_is_refused() {
        let headers = |text: &str| HeaderMap::from_iter([(CONTENT_TYPE, text.parse().unwrap())]);
        assert!(check_media_type(&HeaderMap::new()).is_ok());
        assert!(check_media_type(&headers("application/json; charset=utf-8")).is_ok());
        assert!(check_media_type(&headers("text/plain")).is_err());
    }
}
