//! Commands typed into the draft: told from text that merely begins with a slash, parsed, completed.

use super::nearest;
use super::settings;

/// A command and how it is written.
pub struct Usage {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What follows the name.
    pub arguments: &'static str,
    /// What it does.
    pub description: &'static str,
}

/// All commands, in the order in which help lists them.
pub const COMMANDS: [Usage; 9] = [
    Usage {
        name: "new",
        arguments: "",
        description: "start a new chat",
    },
    Usage {
        name: "model",
        arguments: "[NAME]",
        description: "change the model, or choose one",
    },
    Usage {
        name: "regen",
        arguments: "",
        description: "answer the last message again",
    },
    Usage {
        name: "temp",
        arguments: "N",
        description: "set the temperature",
    },
    Usage {
        name: "set",
        arguments: "KEY VALUE",
        description: "set a sampling value or max_tokens",
    },
    Usage {
        name: "system",
        arguments: "[TEXT]",
        description: "show or set the system prompt (- removes it)",
    },
    Usage {
        name: "save",
        arguments: "[FILE]",
        description: "save again after a failure, or in another file",
    },
    Usage {
        name: "help",
        arguments: "",
        description: "show keys and commands",
    },
    Usage {
        name: "quit",
        arguments: "",
        description: "leave",
    },
];

/// What a draft turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A message to the model.
    Text(String),
    /// A command to carry out.
    Command(SlashCommand),
    /// A command that can't be carried out, and why.
    Invalid(String),
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlashCommand {
    /// Start a new chat.
    New,
    /// Show the system prompt.
    ShowSystem,
    /// Set or remove the system prompt.
    SetSystem(Option<String>),
    /// Set one value.
    Set {
        /// Its name.
        key: String,
        /// Its value.
        value: String,
    },
    /// Choose a model from a list.
    ChooseModel,
    /// Load the model of this name or path.
    LoadModel(String),
    /// Answer the last message again.
    Regenerate,
    /// Try again to save, or save in another file.
    Save(Option<String>),
    /// Show the help.
    Help,
    /// Leave.
    Quit,
}

/// Tells text from commands. Two slashes stand for one that belongs to the text; a path and a text of several
/// lines are text.
#[must_use]
pub fn interpret(draft: &str) -> Input {
    let Some(rest) = draft.strip_prefix('/') else {
        return Input::Text(draft.to_owned());
    };
    if rest.starts_with('/') {
        return Input::Text(rest.to_owned());
    }
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let known = COMMANDS.iter().any(|command| command.name == name);
    if !known
        && (draft.trim_end().contains('\n')
            || !name.chars().all(|letter| letter.is_ascii_alphabetic()))
    {
        return Input::Text(draft.to_owned());
    }
    match command(name, arguments.trim()) {
        Ok(command) => Input::Command(command),
        Err(reason) => Input::Invalid(reason),
    }
}

/// The draft that sends this text: a text that would be taken for a command gets a slash more.
#[must_use]
pub fn draft_of(text: &str) -> String {
    match interpret(text) {
        Input::Text(same) if same == text => same,
        Input::Text(_) | Input::Command(_) | Input::Invalid(_) => format!("/{text}"),
    }
}

fn command(name: &str, arguments: &str) -> Result<SlashCommand, String> {
    let plain = |command| match arguments {
        "" => Ok(command),
        extra => Err(format!("/{name} takes nothing after it, not '{extra}'")),
    };
    match name {
        "new" => plain(SlashCommand::New),
        "regen" => plain(SlashCommand::Regenerate),
        "help" => plain(SlashCommand::Help),
        "quit" => plain(SlashCommand::Quit),
        "system" => Ok(match arguments {
            "" => SlashCommand::ShowSystem,
            "-" => SlashCommand::SetSystem(None),
            text => SlashCommand::SetSystem(Some(text.to_owned())),
        }),
        "save" => Ok(SlashCommand::Save(
            (!arguments.is_empty()).then(|| arguments.to_owned()),
        )),
        "model" if arguments.is_empty() => Ok(SlashCommand::ChooseModel),
        "model" => Ok(SlashCommand::LoadModel(arguments.to_owned())),
        "temp" if arguments.is_empty() => Err("/temp needs a number, such as /temp 0.7".into()),
        "temp" => Ok(SlashCommand::Set {
            key: "temperature".into(),
            value: arguments.to_owned(),
        }),
        "set" => match arguments.split_once(char::is_whitespace) {
            Some((key, value)) => Ok(SlashCommand::Set {
                key: key.to_owned(),
                value: value.trim().to_owned(),
            }),
            None => Err(format!(
                "/set needs a name and a value; the names are {}",
                settings::KEYS.join(", ")
            )),
        },
        unknown => {
            let meant = nearest(unknown, COMMANDS.iter().map(|command| command.name))
                .map_or_else(String::new, |name| format!("; did you mean /{name}?"));
            Err(format!(
                "there is no command /{unknown}{meant} (a message that begins with / is sent by //)"
            ))
        }
    }
}

/// What can be completed in a draft.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completion {
    /// What the draft would become, and a description of each.
    pub items: Vec<(String, String)>,
    /// The chosen one.
    pub selected: usize,
}

impl Completion {
    /// The completions of a draft; none where the draft is no command being typed.
    #[must_use]
    pub fn of(draft: &str, models: &[String]) -> Self {
        let items = match draft.strip_prefix('/') {
            Some(rest) if !rest.contains(['\n', '/']) => match rest.split_once(' ') {
                None => commands(rest),
                Some(("set", key)) => starting(draft, key, settings::KEYS.iter().copied()),
                Some(("model", name)) => starting(draft, name, models.iter().map(String::as_str)),
                Some(_) => Vec::new(),
            },
            _ => Vec::new(),
        };
        Completion { items, selected: 0 }
    }

    /// Whether there is nothing to complete.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// What the draft becomes when the chosen one is taken.
    #[must_use]
    pub fn chosen(&self) -> Option<&str> {
        self.items.get(self.selected).map(|(text, _)| text.as_str())
    }

    /// Moves the choice, round the ends.
    pub fn move_by(&mut self, steps: isize) {
        if let Ok(count) = isize::try_from(self.items.len()).map(|count| count.max(1)) {
            let at = isize::try_from(self.selected).unwrap_or(0);
            self.selected = usize::try_from((at + steps).rem_euclid(count)).unwrap_or(0);
        }
    }
}

fn commands(typed: &str) -> Vec<(String, String)> {
    COMMANDS
        .iter()
        .filter(|command| command.name.starts_with(typed))
        .map(|command| {
            let gap = if command.arguments.is_empty() {
                ""
            } else {
                " "
            };
            (
                format!("/{}{gap}", command.name),
                command.description.to_owned(),
            )
        })
        .collect()
}

fn starting<'a>(
    draft: &str,
    typed: &str,
    names: impl Iterator<Item = &'a str>,
) -> Vec<(String, String)> {
    let before = &draft[..draft.len() - typed.len()];
    names
        .filter(|name| name.to_lowercase().starts_with(&typed.to_lowercase()) && *name != typed)
        .map(|name| (format!("{before}{name}"), String::new()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(draft: &str) -> Input {
        Input::Text(draft.to_owned())
    }

    #[test]
    fn paths_and_pasted_lines_that_begin_with_a_slash_are_text() {
        for draft in [
            "/usr/bin/env says no",
            "/etc/hosts",
            "/tmp\nwhat is this?",
            "/v1.2 is out",
            "a /new day",
        ] {
            assert_eq!(interpret(draft), text(draft), "{draft}");
        }
    }

    #[test]
    fn two_slashes_send_one() {
        assert_eq!(interpret("//new"), text("/new"));
        for sent in ["/new", "/nwe", "//", "/usr/bin", "plain"] {
            assert_eq!(interpret(&draft_of(sent)), text(sent), "{sent}");
        }
    }

    #[test]
    fn commands_are_parsed_with_their_arguments() {
        let set = |key: &str, value: &str| SlashCommand::Set {
            key: key.into(),
            value: value.into(),
        };
        let cases = [
            ("/new", SlashCommand::New),
            ("/new ", SlashCommand::New),
            ("/system", SlashCommand::ShowSystem),
            ("/system -", SlashCommand::SetSystem(None)),
            (
                "/system be\nbrief",
                SlashCommand::SetSystem(Some("be\nbrief".into())),
            ),
            ("/temp 0.3", set("temperature", "0.3")),
            ("/set top_k  20", set("top_k", "20")),
            ("/model", SlashCommand::ChooseModel),
            (
                "/model qwen3 0.6b",
                SlashCommand::LoadModel("qwen3 0.6b".into()),
            ),
            ("/regen", SlashCommand::Regenerate),
        ];
        for (draft, command) in cases {
            assert_eq!(interpret(draft), Input::Command(command), "{draft}");
        }
    }

    #[test]
    fn a_wrong_command_says_what_would_be_right() {
        let reason = |draft| match interpret(draft) {
            Input::Invalid(reason) => reason,
            other => format!("{other:?}"),
        };
        assert_eq!(
            reason("/modle x"),
            "there is no command /modle; did you mean /model? (a message that begins with / is sent by //)"
        );
        assert_eq!(
            reason("/new chat"),
            "/new takes nothing after it, not 'chat'"
        );
        assert_eq!(reason("/temp"), "/temp needs a number, such as /temp 0.7");
        assert!(reason("/set top_k").starts_with("/set needs a name and a value"));
    }

    #[test]
    fn what_is_typed_so_far_is_completed() {
        let completed = |draft: &str| -> Vec<String> {
            let models = ["Qwen3-0.6B".to_owned(), "smollm2".to_owned()];
            Completion::of(draft, &models)
                .items
                .into_iter()
                .map(|(text, _)| text)
                .collect()
        };
        assert_eq!(completed("/s"), ["/set ", "/system ", "/save "]);
        assert_eq!(completed("/set top"), ["/set top_k", "/set top_p"]);
        assert_eq!(completed("/model q"), ["/model Qwen3-0.6B"]);
        assert_eq!(completed("/").len(), COMMANDS.len());
        for none in ["", "hello /", "/usr/", "/new\n", "/temp 0"] {
            assert!(completed(none).is_empty(), "{none:?}");
        }
    }
}
