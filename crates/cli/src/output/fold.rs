//! Long lines of prose in a terminal. Pure.

/// Breaks lines that are longer than the terminal between words. What is broken off an
/// indented line is indented by two more. A command to copy (`$ …`) and a word that is too
/// long stay whole.
pub fn fold(text: &str, width: Option<u16>) -> String {
    let Some(width) = width.map(usize::from) else { return text.to_owned() };
    let lines: Vec<_> = text.split('\n').map(|line| fold_line(line, width)).collect();
    lines.join("\n")
}

fn fold_line(line: &str, width: usize) -> String {
    let words = line.trim_start();
    let indent = line.len() - words.len();
    if line.chars().count() <= width || words.starts_with("$ ") {
        return line.to_owned();
    }
    let hanging = if indent == 0 { 0 } else { indent + 2 };
    let (mut folded, mut used) = (line[..indent].to_owned(), indent);
    for (number, word) in words.split(' ').enumerate() {
        let length = word.chars().count();
        if number > 0 && used + 1 + length > width {
            folded.push('\n');
            folded.push_str(&" ".repeat(hanging));
            used = hanging;
        } else if number > 0 {
            folded.push(' ');
            used += 1;
        }
        folded.push_str(word);
        used += length;
    }
    folded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_breaks_between_words_and_keeps_its_indent() {
        let text =
            "It waits for the substrate.\n    reason: the row is invalid\n    $ slipway explain x";
        let folded = "It waits for the\nsubstrate.\n    reason: the\n      row is\n      invalid\n    $ slipway explain x";
        assert_eq!(fold(text, Some(16)), folded);
        assert_eq!(fold(text, None), text);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_what_can_fit_does(
            indent in 0_usize..8,
            words in prop::collection::vec("[a-z]{1,9}", 1..30),
            width in 20_u16..60,
        ) {
            let line = format!("{}{}", " ".repeat(indent), words.join(" "));
            let folded = fold(&line, Some(width));
            prop_assert!(folded.lines().all(|line| line.len() <= usize::from(width)));
            let again: Vec<_> = folded.split_whitespace().collect();
            prop_assert_eq!(again, words);
        }
    }
}
