//! The pages of the documentation: README.md and docs/, with the files and commands that they show.

use crate::program::repository;

/// A page.
pub struct Page {
    /// Its path in the repository.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A block of code in a page.
#[derive(Debug, PartialEq)]
pub struct Block<'a> {
    /// The word after its fence; may be empty.
    pub kind: &'a str,
    /// The number of its first line in the page, from 1.
    pub first_line: usize,
    /// The nearest line of text above it.
    pub above: &'a str,
    /// Its lines.
    pub lines: Vec<&'a str>,
}

/// A command in a page.
#[derive(Debug, PartialEq)]
pub struct Command {
    /// Where it stands: `docs/find.md:7`.
    pub place: String,
    /// Its words as a shell passes them on, the program's name first, without redirections and what follows a pipe.
    pub words: Vec<String>,
}

/// All pages that a user reads.
///
/// # Panics
/// If one cannot be read.
pub fn pages() -> Vec<Page> {
    let folder = repository("docs");
    let listed = std::fs::read_dir(&folder).expect("docs/ can be listed");
    let names = listed.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| format!("docs/{}", name.to_str().expect("UTF-8")));
    let mut paths: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
    paths.push("README.md".to_owned());
    paths.sort();
    let read = |path: String| {
        let text = std::fs::read_to_string(repository(&path)).expect("a page");
        Page { path, text }
    };
    paths.into_iter().map(read).collect()
}

impl Page {
    /// Its blocks of code.
    pub fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks = Vec::new();
        let mut above = "";
        let mut lines = self.text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let Some(kind) = line.trim_start().strip_prefix("```") else {
                if !line.is_empty() {
                    above = line;
                }
                continue;
            };
            let inside = lines.by_ref().map(|(_, line)| line);
            let inside = inside.take_while(|line| !line.trim_start().starts_with("```"));
            blocks.push(Block {
                kind,
                first_line: number + 2,
                above,
                lines: inside.collect(),
            });
        }
        blocks
    }

    /// The commands in its blocks that begin with this program, after a prompt, `sudo`, variables or `- run:`.
    ///
    /// # Panics
    /// If a shell could not read one.
    pub fn commands(&self, program: &str) -> Vec<Command> {
        let mut commands = Vec::new();
        for block in self.blocks() {
            let mut lines = block.lines.iter().enumerate();
            while let Some((number, line)) = lines.next() {
                let mut line = (*line).to_owned();
                let place = format!("{}:{}", self.path, block.first_line + number);
                while line.ends_with('\\') {
                    line.pop();
                    line += lines.next().map_or("", |(_, more)| more.trim());
                }
                if line.contains(program)
                    && let Some(words) = words_of(&line, program, &place)
                {
                    commands.push(Command { place, words });
                }
            }
        }
        commands
    }
}

/// The words of a line from `program` on, if it is a command of that program.
fn words_of(line: &str, program: &str, place: &str) -> Option<Vec<String>> {
    let mut line = line.trim_start();
    loop {
        let first = line.split_whitespace().next()?;
        if first == program {
            break;
        }
        let goes_before = ["$", "sudo", "-", "run:"].contains(&first) || first.contains('=');
        line = goes_before.then(|| line[first.len()..].trim_start())?;
    }
    let words = shell_words::split(line).unwrap_or_else(|error| panic!("{place}: {line}: {error}"));
    let ends = |word: &String| [">", "<", "|", "&", "&&", ";", "||", "2>&1"].contains(&&**word);
    Some(words.into_iter().take_while(|word| !ends(word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_blocks_alone() {
        let text = "`gauge run` is text, and so is\ngauge run --nothing\n\n```sh\nsudo gauge run a --set 'x=[1, 2]'  # why\n\
                    A=b gauge plan \\\n  c > d\npodman run gauge\n```\n\n  ```console\n  $ gauge x | grep y\n  gauge: done\n  ```\n";
        let page = Page {
            path: "p.md".into(),
            text: text.into(),
        };
        let found: Vec<(String, String)> = (page.commands("gauge").into_iter())
            .map(|command| (command.place, command.words.join(",")))
            .collect();
        let expected = [
            ("p.md:5", "gauge,run,a,--set,x=[1, 2]"),
            ("p.md:6", "gauge,plan,c"),
            ("p.md:12", "gauge,x"),
        ];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(page.blocks()[0].above, "gauge run --nothing");
    }

    #[test]
    fn pages_are_those_of_the_repository() {
        let pages = pages();
        assert!(pages.iter().any(|page| page.path == "README.md"));
        assert!(pages.iter().any(|page| page.path == "docs/recipes.md"));
    }
}
