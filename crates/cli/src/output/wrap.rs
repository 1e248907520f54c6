//! Long lines of prose in a terminal. Pure.

/// Breaks lines that are longer than the terminal between words. What is broken off an
/// indented line is indented by two more. A command to copy (`$ …`) and a word that is too
/// long stay whole.
pub fn wrap(text: &str, width: Option<u16>) -> String {
    let Some(width) = width.map(usize::from) else { return text.to_owned() };
    let lines: Vec<_> = text.split('\n').map(|line| wrap_line(line, width)).collect();
    lines.join("\n")
}

fn wrap_line(line: &str, width: usize) -> String {
    let words = line.trim_start();
    let indent = line.len() - words.len();
    if line.chars().count() <= width || words.starts_with("$ ") {
        return line.to_owned();
    }
    let hanging = if indent == 0 { 0 } else { indent + 2 };
    let (mut wrapped, mut used) = (line[..indent].to_owned(), indent);
    for (number, word) in words.split(' ').enumerate() {
        let length = word.chars().count();
        if number > 0 && used + 1 + length > width {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(hanging));
            used = hanging;
        } else if number > 0 {
            wrapped.push(' ');
            used += 1;
        }
        wrapped.push_str(word);
        used += length;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_breaks_between_words_and_keeps_its_indent() {
        let text =
            "It waits for the substrate.\n    reason: the row is invalid\n    $ slipway explain x";
        let wrapped = "It waits for the\nsubstrate.\n    reason: the\n      row is\n      invalid\n    $ slipway explain x";
        assert_eq!(wrap(text, Some(16)), wrapped);
        assert_eq!(wrap(text, None), text);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_what_can_fit_does(
            indent in 0_usize..8,
            words in prop::collection::vec("[a-z]{1,9}", 1..30),
            width in 20_u16..60,
        ) {
            let line = format!("{}{}", " ".repeat(indent), words.join(" "));
            let wrapped = wrap(&line, Some(width));
            prop_assert!(wrapped.lines().all(|line| line.len() <= usize::from(width)));
            let again: Vec<_> = wrapped.split_whitespace().collect();
            prop_assert_eq!(again, words);
        }
    }
}
