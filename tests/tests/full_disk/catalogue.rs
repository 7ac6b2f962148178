//! Databases are made and deleted on a disk that is full: wholly or not at all.

use serde_json::{Value, json};

use seqtide_tests::{Api, Database};

use crate::faults::{Disk, PLENTY};
use crate::load::{assert_clean, reason};

/// As much as the catalogue needs, but no database.
const ROOM_FOR_THE_CATALOGUE: i64 = 2_000;

/// A start has a catalogue to change where a database was being made or deleted when the last process ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_to_tidy_up_starts_on_a_full_disk() {
    let disk = Disk::with_room(PLENTY);
    let mut server = disk.launch().start();
    let database = Database::create(&server, "db").await;
    database.put("a", &json!({})).await;
    Database::create(&server, "cut").await;
    server.stop();
    let catalogue = server.data_dir().join("catalogue.json");
    let mut cut: Value = serde_json::from_slice(&std::fs::read(&catalogue).unwrap()).unwrap();
    cut["databases"]["cut"]["unfinished"] = true.into();
    std::fs::write(&catalogue, cut.to_string()).unwrap();

    disk.set_room(0);
    server.restart_on_same_port_and_data();
    let api = Api::new(&server);
    assert_eq!(api.get("/_all_dbs").expect(200).await.json(), json!(["db"]));
    Database::at(&server, "db").get("/a").expect(200).await;
    disk.set_room(PLENTY);
    Database::create(&server, "cut").await;
    assert_eq!(api.get("/_all_dbs").expect(200).await.json(), json!(["cut", "db"]));
    server.stop();
    assert_clean(&server);
}

/// Of it the catalogue does not know how far it has counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_put_here_can_be_read_on_a_full_disk() {
    let disk = Disk::with_room(PLENTY);
    let mut server = disk.launch().start();
    let database = Database::create(&server, "db").await;
    database.put("a", &json!({ "n": 1 })).await;
    server.stop();
    let catalogue = server.data_dir().join("catalogue.json");
    let mut without: Value = serde_json::from_slice(&std::fs::read(&catalogue).unwrap()).unwrap();
    without["databases"].as_object_mut().unwrap().remove("db").unwrap();
    std::fs::write(&catalogue, without.to_string()).unwrap();

    disk.set_room(0);
    server.restart_on_same_port_and_data();
    for _ in 0..2 {
        assert_eq!(database.get("/a").expect(200).await.json()["n"], 1);
    }
    disk.set_room(PLENTY);
    assert!(database.put("b", &json!({})).await.seq() > 1 << 45, "in a new incarnation");
    server.stop();
    assert_clean(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_does_not_fit_is_not_half_made() {
    let disk = Disk::with_room(PLENTY);
    let mut server = disk.launch().start();
    let database = Database::create(&server, "db").await;
    database.put("a", &json!({})).await;
    let api = Api::new(&server);
    for room in [0, 100, ROOM_FOR_THE_CATALOGUE] {
        disk.set_room(room);
        for _ in 0..2 {
            reason(&api.put("/new").send().await);
            api.get("/new").expect(404).await;
            assert_eq!(api.get("/_all_dbs").expect(200).await.json(), json!(["db"]));
        }
        database.get("/a").expect(200).await;
    }
    disk.set_room(PLENTY);
    api.put("/new").expect(201).await;
    assert_eq!(Database::at(&server, "new").put("a", &json!({})).await.seq(), 1);
    server.stop();
    assert_clean(&server);
}
