//! Finds what was probably meant by a word that is nearly right.

/// The candidate that `word` is nearest to, where one is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().max(3) / 3 + 1)
        .map(|(_, candidate)| candidate)
}

/// The insertions, deletions and replacements that make one word the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_word_and_nonsense_finds_none() {
        let words = ["new", "system", "temp", "model", "quit"];
        assert_eq!(nearest("sytsem", words), Some("system"));
        assert_eq!(nearest("modle", words), Some("model"));
        assert_eq!(nearest("nwe", words), Some("new"));
        assert_eq!(nearest("frobnicate", words), None);
    }
}
