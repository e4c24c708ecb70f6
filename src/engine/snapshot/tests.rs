#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn basis() -> Basis {
    Basis {
        model: "m".into(),
        llama_cpp: "1".into(),
        types: (KvType::F16, KvType::Q8_0),
        swa_cache: SwaCache::Full,
    }
}

fn snapshot(tokens: usize) -> Snapshot {
    let owner = |at: usize| Owner {
        message: (!at.is_multiple_of(3)).then_some(at / 3),
        role: [
            None,
            Some(Role::System),
            Some(Role::User),
            Some(Role::Assistant),
        ][at % 4],
    };
    Snapshot {
        basis: basis(),
        chat_time: jiff::civil::date(2026, 3, 4).at(5, 6, 7, 0),
        prefill_tok_s: Some(250.5),
        held: OwnedTokens {
            tokens: (0..tokens)
                .map(|id| TokenId(i32::try_from(id).unwrap()))
                .collect(),
            owners: (0..tokens).map(owner).collect(),
        },
        state: (0..200_u8).collect(),
    }
}

fn bytes(snapshot: &Snapshot) -> Vec<u8> {
    let mut bytes = snapshot.encode_front().unwrap();
    bytes.extend(&snapshot.state);
    bytes
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv/1.kv");
    for tokens in [0, 1, 100] {
        let snapshot = snapshot(tokens);
        let size = write(&snapshot, &path, 1 << 20).unwrap().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), size);
        assert_eq!(read(&path, &basis()).unwrap(), snapshot);
    }
    let names: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing half written is left");
}

#[test]
fn what_is_cut_or_changed_anywhere_is_refused() {
    let whole = bytes(&snapshot(20));
    for len in 0..whole.len() {
        let error = Snapshot::decode(whole[..len].to_vec(), &basis()).unwrap_err();
        assert!(
            matches!(error, SnapshotError::Foreign | SnapshotError::Damaged),
            "{len}: {error}"
        );
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x11;
        if let Ok(read) = Snapshot::decode(changed, &basis()) {
            // The date and the rate are no part of the state.
            assert_eq!(
                (read.held, read.state),
                (snapshot(20).held, snapshot(20).state)
            );
        }
    }
    let longer = [whole, vec![0]].concat();
    assert!(Snapshot::decode(longer, &basis()).is_err());
}

#[test]
fn another_model_and_other_options_are_told() {
    let whole = bytes(&snapshot(3));
    let told = |change: fn(&mut Basis)| {
        let mut other = basis();
        change(&mut other);
        Snapshot::decode(whole.clone(), &other)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        told(|basis| basis.model = "n".into()),
        "it was made with another model"
    );
    assert_eq!(
        told(|basis| basis.llama_cpp = "2".into()),
        "it was made with another llama.cpp"
    );
    assert_eq!(
        told(|basis| basis.types.0 = KvType::F32),
        "it was made with other cache types"
    );
    assert!(told(|basis| basis.swa_cache = SwaCache::Small).contains("sliding window"));
}

#[test]
fn the_ones_used_longest_ago_give_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = |number: u32| folder.path().join(format!("{number}.kv"));
    let size = write(&snapshot(10), &path(0), 1 << 20).unwrap().unwrap();
    let hour = |ago: u64| std::time::SystemTime::now() - std::time::Duration::from_secs(ago * 3600);
    for number in 1..4 {
        write(&snapshot(10), &path(number), 1 << 20).unwrap();
    }
    for number in 0..4 {
        let file = std::fs::File::options()
            .write(true)
            .open(path(number))
            .unwrap();
        file.set_modified(hour(10 - u64::from(number))).unwrap();
    }
    std::fs::write(folder.path().join("0.kv.new"), "half").unwrap();
    read(&path(0), &basis()).unwrap();
    write(&snapshot(10), &path(4), 3 * size).unwrap();
    let kept: Vec<bool> = (0..5).map(|number| path(number).exists()).collect();
    assert_eq!(
        kept,
        [true, false, false, true, true],
        "the first was used just now"
    );
    assert!(!folder.path().join("0.kv.new").exists());
    assert_eq!(write(&snapshot(10), &path(4), size - 1).unwrap(), None);
    assert!(!path(4).exists(), "an old one would be of no use");
}
