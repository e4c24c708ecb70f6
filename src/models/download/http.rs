//! One file over HTTP. A cut download goes on where it stopped only if the server proves, by a matching 206 to
//! a request with `If-Range`, that it is still the same file.

use std::io::Read;
use std::time::Duration;

use ureq::http::{HeaderMap, StatusCode, header};

use super::part::{Origin, Part};
use super::{PullError, PullRequest, SourceError, Watch, check_space};
use crate::text::sanitize::neutral_line;

/// A refused or silent server is given up after this, so that the next source gets its turn.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a download that is cut goes on.
const TRIES: usize = 5;

/// How one request ended.
enum Outcome {
    /// The whole file is there.
    Complete,
    /// The connection was cut; some bytes arrived.
    Cut(String),
    /// What is there cannot be continued.
    StartOver,
}

pub(super) fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(ANSWER_TIMEOUT))
        .timeout_per_read(Some(READ_TIMEOUT))
        .http_status_as_error(false)
        .accept_encoding("identity")
        .user_agent(concat!("platen/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

pub(super) fn fetch(
    url: &str,
    token: Option<&str>,
    request: &PullRequest,
    part: &mut Part,
    watch: &mut Watch,
) -> Result<(), SourceError> {
    let agent = agent();
    let mut last = String::new();
    for _ in 0..TRIES {
        watch.check()?;
        let there = part.len()?;
        let resume = part.origin().filter(|origin| {
            origin.is_at(url) && there > 0 && request.bytes.is_none_or(|bytes| there < bytes)
        });
        let before = if resume.is_some() { there } else { 0 };
        match attempt(
            &agent,
            (url, token),
            resume.as_ref(),
            request,
            (part, watch),
        )? {
            Outcome::Complete => return Ok(()),
            Outcome::StartOver => part.restart()?,
            Outcome::Cut(reason) if part.len()? > before || resume.is_some() => last = reason,
            Outcome::Cut(reason) => return Err(SourceError::Unusable(reason)),
        }
    }
    Err(SourceError::Unusable(format!(
        "gave up after {TRIES} tries: {last}"
    )))
}

fn attempt(
    agent: &ureq::Agent,
    (url, token): (&str, Option<&str>),
    resume: Option<&Origin>,
    wanted: &PullRequest,
    (part, watch): (&mut Part, &mut Watch),
) -> Result<Outcome, SourceError> {
    let mut request = agent.get(url);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    if let Some(origin) = resume {
        request = request.header(header::RANGE, format!("bytes={}-", part.len()?));
        request = request.header(header::IF_RANGE, &origin.etag);
    }
    let mut response = match request.call() {
        Ok(response) => response,
        Err(ureq::Error::Io(error)) => return Err(SourceError::Unusable(error.to_string())),
        Err(error) => return Err(SourceError::Unusable(error.to_string())),
    };
    let headers = response.headers();
    let etag = strong_etag(headers);
    let (start, total) = match (response.status(), resume) {
        (StatusCode::PARTIAL_CONTENT, Some(origin)) => match content_range(headers) {
            Some((start, end, total))
                if start == part.len()?
                    && end.checked_add(1) == Some(total)
                    && wanted.bytes.is_none_or(|bytes| bytes == total)
                    && etag.as_ref().is_none_or(|etag| *etag == origin.etag) =>
            {
                (start, Some(total))
            }
            _ => return Ok(Outcome::StartOver),
        },
        (StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => return Ok(Outcome::StartOver),
        (StatusCode::OK, _) => (0, content_length(headers)),
        (status, _) => return Err(SourceError::Unusable(refusal(status))),
    };
    reject_pages(headers)?;
    if let (Some(total), Some(bytes)) = (total, wanted.bytes)
        && total != bytes
    {
        return Err(SourceError::Unusable(format!(
            "it has a file of {total} bytes instead of {bytes}"
        )));
    }
    let total = total.or(wanted.bytes);
    if start == 0 {
        // Only now: what is there is worth more than a page that says "log in".
        part.restart()?;
    }
    check_space(&part.folder, total.unwrap_or(0).saturating_sub(start))?;
    if let Some(etag) = etag {
        part.set_origin(&Origin::new(url, etag))?;
    }
    part.seek_to_end()?;
    receive(
        &mut response.body_mut().as_reader(),
        start,
        total,
        (part, watch),
    )
}

fn receive(
    body: &mut dyn Read,
    start: u64,
    total: Option<u64>,
    (part, watch): (&mut Part, &mut Watch),
) -> Result<Outcome, SourceError> {
    let mut done = start;
    let mut buffer = vec![0; 128 << 10];
    loop {
        watch.check()?;
        let count = match body.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Ok(Outcome::Cut(cut(done, total, &error.to_string()))),
        };
        if count == 0 {
            break;
        }
        if total.is_some_and(|total| done + count as u64 > total) {
            part.restart()?;
            return Err(SourceError::Unusable(
                "it sent more bytes than it announced".to_owned(),
            ));
        }
        if done == 0 && !b"GGUF".starts_with(&buffer[..count.min(4)]) {
            part.restart()?;
            return Err(SourceError::Unusable(
                "what it sent is no GGUF file".to_owned(),
            ));
        }
        part.write(&buffer[..count])?;
        done += count as u64;
        watch.progress(done, total.unwrap_or(0));
    }
    match total {
        Some(total) if done < total => Ok(Outcome::Cut(cut(
            done,
            Some(total),
            "the connection was closed",
        ))),
        _ => Ok(Outcome::Complete),
    }
}

fn cut(done: u64, total: Option<u64>, reason: &str) -> String {
    match total {
        Some(total) => format!(
            "it stopped after {done} of {total} bytes: {}",
            neutral_line(reason)
        ),
        None => format!("it stopped after {done} bytes: {}", neutral_line(reason)),
    }
}

/// What a status other than success means to the user.
pub(super) fn refusal(status: StatusCode) -> String {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            format!(
                "it answered {status}; the model may need a licence accepted on the hub, and HF_TOKEN set"
            )
        }
        status => format!("it answered {status}"),
    }
}

/// A login or error page arrives with status 200 on many networks.
fn reject_pages(headers: &HeaderMap) -> Result<(), SourceError> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if kind
        .trim_start()
        .to_ascii_lowercase()
        .starts_with("text/html")
    {
        return Err(SourceError::Unusable(
            "it sent a web page instead of the model".to_owned(),
        ));
    }
    Ok(())
}

fn strong_etag(headers: &HeaderMap) -> Option<String> {
    let etag = headers.get(header::ETAG)?.to_str().ok()?;
    etag.starts_with('"').then(|| etag.to_owned())
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// `bytes START-END/TOTAL`.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64, u64)> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.split_once('-')?;
    Some((start.parse().ok()?, end.parse().ok()?, total.parse().ok()?))
}

/// Reads a small text over HTTP.
pub(super) fn text(url: &str, token: Option<&str>) -> Result<String, PullError> {
    let mut request = agent().get(url);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let failed = |reason: String| PullError::Request(format!("{}: {reason}", neutral_line(url)));
    let mut response = request.call().map_err(|error| failed(error.to_string()))?;
    if response.status() != StatusCode::OK {
        return Err(failed(refusal(response.status())));
    }
    response
        .body_mut()
        .read_to_string()
        .map_err(|error| failed(error.to_string()))
}
