//! Stores that are no longer what they were.

use proptest::prelude::*;

use super::*;

/// The bytes of a store with 40 chats, all in the one file.
fn store_bytes() -> Vec<u8> {
    let place = Place::new();
    filled(&place, 40);
    let settle = Connection::open(place.path()).unwrap();
    settle
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(settle);
    std::fs::read(place.path()).unwrap()
}

/// The files beside the store that were kept for their damage, with their contents.
fn kept(place: &Place) -> Vec<Vec<u8>> {
    std::fs::read_dir(place.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.to_string_lossy().contains(".damaged-")
                && path
                    .extension()
                    .is_some_and(|end| !end.to_string_lossy().ends_with("-wal"))
        })
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

#[test]
fn what_can_be_read_of_a_damaged_store_is_saved_and_the_file_is_kept() {
    let place = Place::new();
    let mut bytes = store_bytes();
    // The second half of the pages but the last few.
    let (from, to) = (bytes.len() / 2, bytes.len() - 4 * 4096);
    bytes[from..to].fill(0xA5);
    std::fs::write(place.path(), &bytes).unwrap();
    let found = Store::open(&place.path()).and_then(|opened| match opened.store.check() {
        Ok(()) => panic!("the damage was not seen"),
        Err(StoreError::Damaged { reason, .. }) => {
            drop(opened);
            Store::open_damaged(&place.path(), &reason)
        }
        Err(error) => Err(error),
    });
    let opened = found.unwrap();
    let recovered = opened.recovered.unwrap();
    assert!(
        recovered.chats > 0 && recovered.messages > 0,
        "{recovered:?}"
    );
    assert_eq!(std::fs::read(&recovered.kept_as).unwrap(), bytes);
    assert_eq!(opened.store.chats().unwrap().len() as u64, recovered.chats);
    opened.store.check().unwrap();
    for summary in opened.store.chats().unwrap() {
        assert!(opened.store.chat(summary.id).unwrap().is_some());
    }
}

#[test]
fn a_store_of_rubbish_gives_way_to_an_empty_one() {
    for rubbish in [&[0_u8; 8192][..], b"not a database", &[0xFF; 100]] {
        let place = Place::new();
        std::fs::write(place.path(), rubbish).unwrap();
        let opened = Store::open(&place.path()).unwrap();
        let recovered = opened.recovered.unwrap();
        assert_eq!((recovered.chats, recovered.messages), (0, 0));
        assert_eq!(kept(&place), [rubbish.to_vec()]);
        assert_eq!(opened.store.chats().unwrap(), []);
    }
}

#[test]
fn a_damaged_store_that_another_process_has_open_is_left_alone() {
    let place = Place::new();
    let bytes = [0xFF; 8192];
    let other = super::super::lock::Presence::announce(&place.path()).unwrap();
    std::fs::write(place.path(), bytes).unwrap();
    let error = Store::open(&place.path()).unwrap_err();
    assert!(error.to_string().contains("another platen"), "{error}");
    assert_eq!(std::fs::read(place.path()).unwrap(), bytes);
    drop(other);
    assert!(Store::open(&place.path()).unwrap().recovered.is_some());
}

#[test]
fn messages_whose_chat_is_lost_get_one() {
    let place = Place::new();
    let id = filled(&place, 1)[0];
    let open = Connection::open(place.path()).unwrap();
    open.execute_batch(
        "PRAGMA foreign_keys = off; DELETE FROM chat; DELETE FROM message WHERE no = 1",
    )
    .unwrap();
    drop(open);
    let opened = Store::open_damaged(&place.path(), "for the test").unwrap();
    let chat = opened.store.chat(id).unwrap().unwrap();
    assert_eq!(chat.title, "Recovered chat");
    assert_eq!(chat.nodes.len(), 1);
    assert_eq!(chat.nodes[0].parent, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_damage_makes_the_store_panic_or_lose_the_damaged_file(
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), 1_usize..6000, any::<u8>()), 1..6),
        length in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let mut bytes = BYTES.get_or_init(store_bytes).clone();
        for (at, len, value) in cuts {
            let at = at.index(bytes.len());
            let end = (at + len).min(bytes.len());
            bytes[at..end].fill(value);
        }
        if let Some(length) = length {
            let length = length.index(bytes.len());
            bytes.truncate(length);
        }
        let place = Place::new();
        std::fs::write(place.path(), &bytes).unwrap();
        let outcome = Store::open(&place.path()).and_then(|opened| {
            let mut opened = opened;
            if let Err(StoreError::Damaged { reason, .. }) = opened.store.check() {
                drop(opened);
                opened = Store::open_damaged(&place.path(), &reason)?;
            }
            for summary in opened.store.chats()? {
                let chat = opened.store.chat(summary.id)?;
                assert!(chat.is_some_and(|chat| chat.branch().len() <= chat.nodes.len()));
            }
            let question = node(1, None, Role::User, "still here");
            let id = opened.store.write(&batch(None, vec![&question]))?;
            assert_eq!(opened.store.chat(id)?.unwrap().nodes, [question]);
            Ok(opened.recovered.is_some())
        });
        match outcome {
            Ok(true) => prop_assert_eq!(kept(&place), [bytes]),
            Ok(false) => {}
            // A header that names another program or a newer version is not platen's to mend.
            Err(StoreError::Foreign { .. } | StoreError::Newer { .. }) => {
                prop_assert_eq!(std::fs::read(place.path()).unwrap(), bytes);
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}
