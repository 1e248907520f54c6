//! Parser of server-sent events: bytes in, messages out. Pure; it knows the
//! format but not the content.

/// One message. A message without data is no event, but its id counts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) data: Option<String>,
}

/// Assembles messages from chunks that are cut anywhere.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed after it ends no line.
    returned: bool,
    message: Message,
}

impl Parser {
    /// Returns the messages that these bytes complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Message> {
        let mut messages = Vec::new();
        for byte in bytes {
            let returned = std::mem::replace(&mut self.returned, *byte == b'\r');
            match byte {
                b'\n' if returned => {}
                b'\n' | b'\r' => messages.extend(self.end_line()),
                byte => self.line.push(*byte),
            }
        }
        messages
    }

    fn end_line(&mut self) -> Option<Message> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            return (message != Message::default()).then_some(message);
        }
        let line = String::from_utf8_lossy(&line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => self.message.id = Some(value.to_owned()),
            "event" => self.message.event = Some(value.to_owned()),
            "data" => match &mut self.message.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                data => *data = Some(value.to_owned()),
            },
            // Comments have an empty name, and future fields are ignored.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "retry: 1000\nid: 6\n\n: alive\n\nid: 7\nevent: x.Ready\n\
        data: {\"a\":1}\n\nid: 8\r\ndata: one\r\ndata:two\r\n\r\nid: 9\ndata: cut";

    fn expected() -> Vec<Message> {
        let some = |text: &str| Some(text.to_owned());
        vec![
            Message { id: some("6"), ..Message::default() },
            Message { id: some("7"), event: some("x.Ready"), data: some("{\"a\":1}") },
            Message { id: some("8"), event: None, data: some("one\ntwo") },
        ]
    }

    #[test]
    fn messages_are_the_same_however_the_bytes_are_cut() {
        for size in 1..STREAM.len() {
            let mut parser = Parser::default();
            let pieces = STREAM.as_bytes().chunks(size);
            let messages: Vec<_> = pieces.flat_map(|piece| parser.push(piece)).collect();
            assert_eq!(messages, expected(), "pieces of {size}");
        }
    }
}
