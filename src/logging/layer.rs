//! Turns `tracing` events into log lines. Other crates' chatter below a warning is left out.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::{LogLevel, LogSink};

/// The target of every event of this program starts with this.
const OWN: &str = "platen";

pub(super) struct SinkLayer(pub(super) LogSink);

impl<S: Subscriber> Layer<S> for SinkLayer {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        let limit = if metadata.target().starts_with(OWN) {
            Level::DEBUG
        } else {
            Level::WARN
        };
        *metadata.level() <= limit
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.log_foreign(
            level(*event.metadata().level()),
            event.metadata().target(),
            &text.0,
        );
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        _ => LogLevel::Debug,
    }
}

/// The message first, then the fields as `name=value`.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let separator = if self.0.is_empty() { "" } else { " " };
        let _ = if field.name() == "message" {
            write!(self.0, "{separator}{value:?}")
        } else {
            write!(self.0, "{separator}{}={value:?}", field.name())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt as _;

    #[test]
    fn events_become_lines_with_their_fields() {
        let sink = LogSink::in_memory();
        let subscriber = tracing_subscriber::registry().with(SinkLayer(sink.clone()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "platen::engine", cells = 12, "cache cleared");
            tracing::info!(target: "ureq", "chatter");
            tracing::warn!(target: "ureq", "slow");
        });
        let lines = sink.take();
        let shown: Vec<String> = lines
            .iter()
            .map(|l| format!("{} {} {}", l.level.name(), l.target, l.text))
            .collect();
        assert_eq!(
            shown,
            [
                "info platen::engine cache cleared cells=12",
                "warn ureq slow"
            ]
        );
    }
}
