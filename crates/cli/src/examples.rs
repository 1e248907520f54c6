//! The examples in `--help`. The file of each noun has them as command lines;
//! the words of a line determine its command. A test of the binary runs every
//! one of them.

use clap::Command;

use crate::command::EXAMPLES;

/// Adds the examples to the help of each command, after its own text if it has
/// one. The manual lists commands in the order of their examples, because clap
/// moves a changed command to the end.
#[must_use]
pub fn with_examples(mut command: Command) -> Command {
    let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for line in EXAMPLES.iter().copied().flatten() {
        let path = path(&command, line);
        match groups.last_mut() {
            Some((last, lines)) if *last == path => lines.push(line),
            _ => groups.push((path, vec![line])),
        }
    }
    for (path, lines) in groups {
        command = at(command, &path, &lines);
    }
    command
}

/// The words of a line that name its command, after the program's name.
fn path<'a>(mut command: &Command, line: &'a str) -> Vec<&'a str> {
    let mut path = Vec::new();
    for word in line.split(' ').skip(1) {
        let Some(inner) = command.find_subcommand(word) else { break };
        path.push(word);
        command = inner;
    }
    path
}

fn at(command: Command, path: &[&str], lines: &[&str]) -> Command {
    let Some((first, rest)) = path.split_first() else {
        let text = format!("Examples:\n  {}", lines.join("\n  "));
        let before = command.get_after_help().map(ToString::to_string);
        return command.after_help(match before {
            Some(before) => format!("{before}\n\n{text}"),
            None => text,
        });
    };
    command.mut_subcommand(*first, |inner| at(inner, rest, lines))
}
