//! The `traceparent` header of W3C Trace Context, version 00: the trace that a
//! request belongs to. Our log lines carry it, and its trace id becomes the
//! correlation id if the caller sends none.

/// The position of a request in an external trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceParent<'a> {
    pub(crate) trace_id: &'a str,
    pub(crate) span_id: &'a str,
}

/// Ignores any header that does not match the specification, which is what the
/// specification asks for.
pub(crate) fn parse(text: &str) -> Option<TraceParent<'_>> {
    let mut parts = text.split('-');
    let (version, trace_id, span_id, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    // Later versions may have more parts; version 00 has exactly these.
    let complete = version != "00" || parts.next().is_none();
    let good = complete
        && is_hex(version, 2)
        && version != "ff"
        && is_hex(trace_id, 32)
        && trace_id.bytes().any(|byte| byte != b'0')
        && is_hex(span_id, 16)
        && span_id.bytes().any(|byte| byte != b'0')
        && is_hex(flags, 2);
    good.then_some(TraceParent { trace_id, span_id })
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_parent_as_the_specification_shows_it_is_taken() {
        let text = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let parent = TraceParent { trace_id: TRACE, span_id: "00f067aa0ba902b7" };
        assert_eq!(parse(&text), Some(parent.clone()));
        let later = format!("cc-{TRACE}-00f067aa0ba902b7-01-what-the-future-brings");
        assert_eq!(parse(&later), Some(parent));
    }

    #[test]
    fn anything_else_is_as_good_as_none() {
        let zeros = "0".repeat(32);
        for bad in [
            String::new(),
            TRACE.to_owned(),
            format!("00-{TRACE}-00f067aa0ba902b7"),
            format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            format!("00-{zeros}-00f067aa0ba902b7-01"),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}-00f067aa0ba902b7-0"),
            format!("00-{TRACE}é-00f067aa0ba902b7-01"),
        ] {
            assert_eq!(parse(&bad), None, "{bad}");
        }
    }
}
