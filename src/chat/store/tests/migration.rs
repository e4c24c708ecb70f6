//! From version to version.

use super::super::schema::{Found, backup_path, migrate};
use super::*;

const NEXT: &str = "ALTER TABLE chat ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0";

fn connection(place: &Place) -> Connection {
    Connection::open(place.path()).unwrap()
}

#[test]
fn an_older_store_is_copied_and_brought_forward() {
    let place = Place::new();
    let id = filled(&place, 1)[0];
    let steps = [STEPS[0], NEXT];
    let mut open = connection(&place);
    assert_eq!(
        migrate(&mut open, &place.path(), &steps).unwrap(),
        Found::Current
    );
    open.execute("UPDATE chat SET pinned = 1", []).unwrap();
    assert_eq!(
        migrate(&mut open, &place.path(), &steps).unwrap(),
        Found::Current,
        "the second time changes nothing"
    );
    let copy = Store::open(&backup_path(&place.path(), 1)).unwrap().store;
    assert_eq!(copy.chat(id).unwrap().unwrap().nodes.len(), 2);
    assert_eq!(
        *copy.access(),
        Access::ReadWrite,
        "it is of the old version"
    );
}

#[test]
fn a_step_that_fails_leaves_the_store_as_it_was() {
    let place = Place::new();
    let id = filled(&place, 1)[0];
    let steps = [STEPS[0], NEXT, "CREATE TABLE broken ("];
    assert!(migrate(&mut connection(&place), &place.path(), &steps).is_err());
    let store = place.open();
    assert_eq!(*store.access(), Access::ReadWrite);
    assert_eq!(store.chat(id).unwrap().unwrap().nodes.len(), 2);
}

#[test]
fn a_newer_store_is_read_and_never_written() {
    let place = Place::new();
    let id = filled(&place, 1)[0];
    let newer = connection(&place);
    newer.execute_batch(NEXT).unwrap();
    newer
        .execute_batch("UPDATE message SET role = 'tool' WHERE no = 1")
        .unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let mut store = place.open();
    let Access::ReadOnly(StoreError::Newer { found: 99, .. }) = store.access() else {
        panic!("{:?}", store.access());
    };
    let chat = store.chat(id).unwrap().unwrap();
    assert_eq!((chat.nodes.len(), chat.unknown), (1, 1));
    assert_eq!(chat.branch().len(), 1, "what is known stays reachable");
    let question = node(3, None, Role::User, "q");
    let error = store.write(&batch(None, vec![&question])).unwrap_err();
    assert!(matches!(error, StoreError::Newer { .. }), "{error}");
    assert!(store.connection.execute("DELETE FROM message", []).is_err());
}

#[test]
fn a_message_of_an_unknown_role_stays_in_the_store() {
    let place = Place::new();
    let id = filled(&place, 1)[0];
    connection(&place)
        .execute_batch("UPDATE message SET role = 'tool' WHERE no = 1")
        .unwrap();
    let mut store = place.open();
    let more = node(3, Some(2), Role::User, "more");
    store.write(&batch(Some(id), vec![&more])).unwrap();
    let chat = store.chat(id).unwrap().unwrap();
    assert_eq!((chat.nodes.len(), chat.unknown), (2, 1));
    let role: String = connection(&place)
        .query_row("SELECT role FROM message WHERE no = 1", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(role, "tool");
}
