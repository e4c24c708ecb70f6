//! The ledger: which tokens the cache holds, token by token, and whose they are. It is the engine's only idea of the
//! cache; after every operation its length equals the context's own.

use super::event::{CacheSpan, RereadReason};
use super::token::{Role, TokenId};

/// Whose a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner {
    /// The message, counted from 0 in the prompt that put it there; `None` outside every message.
    pub message: Option<usize>,
    /// Who speaks in it.
    pub role: Option<Role>,
}

/// A prompt's tokens, each with its owner.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnedTokens {
    /// The tokens.
    pub tokens: Vec<TokenId>,
    /// One owner for each token.
    pub owners: Vec<Owner>,
}

impl OwnedTokens {
    /// The newest message that has a token here.
    #[must_use]
    pub fn newest(&self) -> Option<usize> {
        self.owners.iter().filter_map(|owner| owner.message).max()
    }
}

/// How many tokens two lists have in common from the start on.
#[must_use]
pub fn common_prefix(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Plan {
    /// How many of the prompt's tokens are read although their message was held.
    #[must_use]
    pub fn read_again(&self, prompt: &OwnedTokens) -> usize {
        prompt
            .owners
            .iter()
            .skip(self.keep)
            .filter(|owner| owner.message.is_some() && owner.message <= self.newest_held)
            .count()
    }
}

/// The tokens of one sequence of the cache.
#[derive(Debug, Default)]
pub struct Ledger {
    held: OwnedTokens,
    /// Why the cache was emptied since the last prompt, where that was not asked for, and the newest message it held.
    lost: Option<(RereadReason, Option<usize>)>,
}

/// What to keep of the cache for a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Tokens to keep from the start; at least one token of the prompt is always left to read, since its logits
    /// start the reply.
    pub keep: usize,
    /// Why messages are read again, where they are.
    pub reason: Option<RereadReason>,
    /// The newest message that the cache held; what is read of it and of those before it is read again.
    pub newest_held: Option<usize>,
}

impl Ledger {
    /// How many tokens the cache holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.tokens.len()
    }

    /// Whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.tokens.is_empty()
    }

    /// The tokens the cache holds.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        &self.held.tokens
    }

    /// What the cache holds, with whose it is.
    #[must_use]
    pub fn held(&self) -> &OwnedTokens {
        &self.held
    }

    /// The newest message among the first `len` tokens.
    #[must_use]
    pub fn newest_within(&self, len: usize) -> Option<usize> {
        let owners = self.held.owners.iter().take(len);
        owners.filter_map(|owner| owner.message).max()
    }

    /// Compares a prompt with what is held. `changed` names the first generated message that the template rendered
    /// differently from what was generated.
    #[must_use]
    pub fn plan(&self, prompt: &OwnedTokens, changed: Option<usize>) -> Plan {
        let common = common_prefix(&self.held.tokens, &prompt.tokens);
        let keep = common.min(prompt.tokens.len().saturating_sub(1));
        let (reason, newest_held) = if self.is_empty() {
            self.lost
                .clone()
                .map_or((None, None), |(reason, newest)| (Some(reason), newest))
        } else if common == self.len() {
            (None, self.held.newest())
        } else {
            (diverged(prompt, common, changed), self.held.newest())
        };
        Plan {
            keep,
            reason,
            newest_held,
        }
    }

    /// Notes that tokens were read at the end.
    pub fn append(&mut self, tokens: &[TokenId], owners: &[Owner]) {
        self.held.tokens.extend_from_slice(tokens);
        self.held.owners.extend_from_slice(owners);
        self.lost = None;
    }

    /// Notes whose the first tokens are in the prompt that keeps them: a message may be another's part there, or stand
    /// at another place.
    pub fn keep(&mut self, owners: &[Owner]) {
        for (held, owner) in self.held.owners.iter_mut().zip(owners) {
            *held = *owner;
        }
    }

    /// Notes that the cache ends after `len` tokens.
    pub fn truncate(&mut self, len: usize) {
        self.held.tokens.truncate(len);
        self.held.owners.truncate(len);
    }

    /// Notes that the cache was emptied because it was asked for.
    pub fn clear(&mut self) {
        self.truncate(0);
        self.lost = None;
    }

    /// Notes that the cache was emptied because it could not serve; the next plan says why.
    pub fn lose(&mut self, reason: RereadReason) {
        let newest = self.held.newest();
        self.truncate(0);
        self.lost = Some((reason, newest));
    }

    /// The cells in order, by whose they are.
    #[must_use]
    pub fn spans(&self) -> Vec<CacheSpan> {
        let mut spans: Vec<(Owner, CacheSpan)> = Vec::new();
        for owner in &self.held.owners {
            match spans.last_mut() {
                Some((last, span)) if last == owner => span.tokens += 1,
                _ => spans.push((
                    *owner,
                    CacheSpan {
                        role: owner.role,
                        tokens: 1,
                    },
                )),
            }
        }
        spans.into_iter().map(|(_, span)| span).collect()
    }
}

/// Why the prompt leaves what is held after `common` tokens: `None` where only the newest message is to be read.
fn diverged(prompt: &OwnedTokens, common: usize, changed: Option<usize>) -> Option<RereadReason> {
    let newest = prompt.newest()?;
    let message = prompt.owners.get(common)?.message?;
    if message >= newest {
        return None;
    }
    Some(match changed {
        Some(changed) if changed <= message => RereadReason::TemplateChanged { message: changed },
        _ => RereadReason::Edited { message },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(messages: &[(&[i32], Role)]) -> OwnedTokens {
        let mut all = OwnedTokens::default();
        for (at, (ids, role)) in messages.iter().enumerate() {
            for id in *ids {
                all.tokens.push(TokenId(*id));
                all.owners.push(Owner {
                    message: Some(at),
                    role: Some(*role),
                });
            }
        }
        all
    }

    fn held(prompt: &OwnedTokens) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.append(&prompt.tokens, &prompt.owners);
        ledger
    }

    #[test]
    fn an_append_keeps_everything() {
        let ledger = held(&prompt(&[
            (&[1, 2, 3], Role::User),
            (&[4, 5], Role::Assistant),
        ]));
        let next = prompt(&[
            (&[1, 2, 3], Role::User),
            (&[4, 5, 9], Role::Assistant),
            (&[6, 7], Role::User),
        ]);
        assert_eq!(
            ledger.plan(&next, None),
            Plan {
                newest_held: Some(1),
                keep: 5,
                reason: None
            }
        );
    }

    #[test]
    fn a_prompt_that_is_held_whole_leaves_its_last_token_to_read() {
        let same = prompt(&[(&[1, 2, 3], Role::User)]);
        assert_eq!(
            held(&same).plan(&same, None),
            Plan {
                newest_held: Some(0),
                keep: 2,
                reason: None
            }
        );
    }

    #[test]
    fn an_edit_names_the_message() {
        let before = prompt(&[
            (&[1, 2], Role::User),
            (&[3; 30], Role::Assistant),
            (&[5, 6], Role::User),
        ]);
        let after = prompt(&[
            (&[1, 9], Role::User),
            (&[3; 30], Role::Assistant),
            (&[5, 6], Role::User),
        ]);
        assert_eq!(
            held(&before).plan(&after, None),
            Plan {
                newest_held: Some(2),
                keep: 1,
                reason: Some(RereadReason::Edited { message: 0 })
            }
        );
    }

    #[test]
    fn everything_behind_an_edit_that_was_held_counts_as_read_again() {
        let before = prompt(&[
            (&[1, 2], Role::System),
            (&[3, 4, 5], Role::User),
            (&[6], Role::Assistant),
        ]);
        let regenerated = prompt(&[(&[1, 9], Role::System), (&[3, 4, 5], Role::User)]);
        let asked_more = prompt(&[
            (&[1, 9], Role::System),
            (&[3, 4, 5], Role::User),
            (&[6], Role::Assistant),
            (&[7, 8], Role::User),
        ]);
        for (prompt, again) in [(regenerated, 4), (asked_more, 5)] {
            let plan = held(&before).plan(&prompt, None);
            assert_eq!(plan.read_again(&prompt), again);
        }
    }

    #[test]
    fn a_message_that_the_template_changed_is_blamed() {
        let before = prompt(&[(&[1], Role::User), (&[2, 3, 4], Role::Assistant)]);
        let after = prompt(&[
            (&[1], Role::User),
            (&[2, 4], Role::Assistant),
            (&[5], Role::User),
        ]);
        assert_eq!(
            held(&before).plan(&after, Some(1)),
            Plan {
                newest_held: Some(1),
                keep: 2,
                reason: Some(RereadReason::TemplateChanged { message: 1 })
            }
        );
    }

    #[test]
    fn a_lost_cache_says_why_until_something_is_read() {
        let all = prompt(&[(&[1, 2], Role::User)]);
        let mut ledger = held(&all);
        ledger.lose(RereadReason::DecodeFailed);
        assert_eq!(
            ledger.plan(&all, None).reason,
            Some(RereadReason::DecodeFailed)
        );
        ledger.append(&all.tokens, &all.owners);
        assert_eq!(ledger.plan(&all, None).reason, None);
    }

    #[test]
    fn kept_tokens_belong_to_the_messages_of_the_prompt_that_keeps_them() {
        let mut ledger = held(&prompt(&[(&[1, 2, 3], Role::User)]));
        let next = prompt(&[(&[1, 2], Role::System), (&[9], Role::User)]);
        let plan = ledger.plan(&next, None);
        ledger.truncate(plan.keep);
        ledger.keep(&next.owners[..plan.keep]);
        let span = CacheSpan {
            role: Some(Role::System),
            tokens: 2,
        };
        assert_eq!(ledger.spans(), [span]);
    }

    #[test]
    fn spans_follow_the_messages() {
        let ledger = held(&prompt(&[
            (&[1, 2], Role::System),
            (&[3], Role::User),
            (&[4], Role::User),
        ]));
        let spans: Vec<(Option<Role>, u32)> = ledger
            .spans()
            .into_iter()
            .map(|span| (span.role, span.tokens))
            .collect();
        assert_eq!(
            spans,
            [
                (Some(Role::System), 2),
                (Some(Role::User), 1),
                (Some(Role::User), 1)
            ]
        );
    }
}
