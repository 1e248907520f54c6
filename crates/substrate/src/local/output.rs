//! Reads what an agent wrote, in whole lines and bounded pieces.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use slipway_app::ports::substrate::{NodeOutput, OUTPUT_MAX, OutputPart};

use super::process::OUTPUT;

/// The output of the agent of a node directory; empty if it has written nothing yet, or the
/// directory is gone.
pub(super) fn read(directory: &Path, part: OutputPart) -> io::Result<NodeOutput> {
    // The agent owns the directory, and may put anything in this place.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(directory.join(OUTPUT));
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(NodeOutput::default()),
        file => file?,
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let size = found.len();
    let start = match part {
        OutputPart::Last(_) => size.saturating_sub(OUTPUT_MAX),
        // A file that is shorter than it was is another one.
        OutputPart::From(offset) if offset > size => 0,
        OutputPart::From(offset) => offset,
    };
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_MAX).read_to_end(&mut bytes)?;
    Ok(whole_lines(&bytes, start, size, part))
}

/// The lines of a piece that begins at this byte. A line that has no end yet comes later,
/// unless it fills the whole piece.
fn whole_lines(bytes: &[u8], start: u64, size: u64, part: OutputPart) -> NodeOutput {
    let is_full = bytes.len() as u64 == OUTPUT_MAX;
    let end = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => last + 1,
        None if is_full => bytes.len(),
        None => 0,
    };
    let next = start + end as u64;
    let lines = &bytes[..end];
    let (lines, is_cut) = match part {
        OutputPart::From(_) => (lines, next < size && is_full),
        OutputPart::Last(count) => {
            // The first line of a piece from the middle is not whole.
            let from = match lines.iter().position(|byte| *byte == b'\n') {
                Some(first) if start > 0 => first + 1,
                _ => 0,
            };
            let ends = lines.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
            // The end of the line before the first one that is wanted.
            let wanted = ends.map(|(index, _)| index + 1).nth(count).unwrap_or(0);
            (&lines[wanted.max(from)..], start > 0 && wanted < from)
        }
    };
    NodeOutput { text: String::from_utf8_lossy(lines).into_owned(), next, is_cut }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn piece(text: &str, part: OutputPart) -> (String, u64, bool) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(OUTPUT), text).unwrap();
        let NodeOutput { text, next, is_cut } = read(folder.path(), part).unwrap();
        (text, next, is_cut)
    }

    #[test]
    fn the_last_lines_are_whole() {
        let text = "one\ntwo\nthree\nhalf";
        for (count, expected) in
            [(0, ""), (1, "three\n"), (2, "two\nthree\n"), (9, "one\ntwo\nthree\n")]
        {
            assert_eq!(piece(text, OutputPart::Last(count)), (expected.to_owned(), 14, false));
        }
        assert_eq!(piece(text, OutputPart::From(4)), ("two\nthree\n".to_owned(), 14, false));
        assert_eq!(piece(text, OutputPart::From(14)), (String::new(), 14, false));
        assert_eq!(piece("new\n", OutputPart::From(99)), ("new\n".to_owned(), 4, false));
        assert_eq!(piece("", OutputPart::Last(5)), (String::new(), 0, false));
    }

    #[test]
    fn an_answer_is_bounded() {
        let text = "0123456789\n".repeat(100_000);
        let (last, next, is_cut) = piece(&text, OutputPart::Last(50_000));
        assert!(last.len() as u64 <= OUTPUT_MAX && is_cut && next == text.len() as u64);
        assert!(last.starts_with("0123456789\n"));
        let (few, _, is_cut) = piece(&text, OutputPart::Last(3));
        assert_eq!((few.lines().count(), is_cut), (3, false));
        let endless = "x".repeat(600_000);
        let (first, next, is_cut) = piece(&endless, OutputPart::From(0));
        assert_eq!((first.len() as u64, next, is_cut), (OUTPUT_MAX, OUTPUT_MAX, true));
    }

    #[test]
    fn what_is_no_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path(), OutputPart::Last(5)).unwrap(), NodeOutput::default());
        std::fs::write(folder.path().join("secret"), "secret\n").unwrap();
        symlink(folder.path().join("secret"), folder.path().join(OUTPUT)).unwrap();
        assert!(read(folder.path(), OutputPart::Last(5)).is_err());
    }

    /// Whoever follows sees every whole line once, however the file grows.
    #[test]
    fn following_misses_nothing() {
        let text = "a\nbb\n\nccc\nd";
        let folder = tempfile::tempdir().unwrap();
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let (mut seen, mut next) = (String::new(), 0);
                for size in [first, second, text.len()] {
                    std::fs::write(folder.path().join(OUTPUT), &text[..size]).unwrap();
                    let found = read(folder.path(), OutputPart::From(next)).unwrap();
                    seen += &found.text;
                    next = found.next;
                }
                assert_eq!(seen, "a\nbb\n\nccc\n", "written in pieces of {first} and {second}");
            }
        }
    }
}
