//! The bytes of a `_changes` answer around its rows, as CouchDB writes them.

/// `normal`, and `longpoll` that had rows at once.
pub fn normal(rows: &[&str], last_seq: u64, pending: u64) -> String {
    format!("{{\"results\":[\n{}\n],\n\"last_seq\":{last_seq},\"pending\":{pending}}}\n\n", rows.join(",\r\n"))
}

/// `longpoll` that had to wait: one newline tells at once that it waits.
pub fn longpoll_that_waited(rows: &[&str], last_seq: u64, pending: u64) -> String {
    normal(rows, last_seq, pending).replacen("[\n", "[\n\n", 1)
}

/// `continuous` up to its end; `waited_first` when it had nothing to send at first.
pub fn continuous(rows: &[&str], waited_first: bool, last_seq: u64, pending: u64) -> String {
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    format!("{}{lines}{{\"last_seq\":{last_seq},\"pending\":{pending}}}\n\n", newline_if(waited_first))
}

/// `eventsource` up to its end; each row comes with the text of its `id:`.
pub fn eventsource(rows: &[(&str, &str)], waited_first: bool) -> String {
    let events: String = rows.iter().map(|(row, id)| format!("data: {row}\nid: {id}\n\n")).collect();
    format!("{}{events}\n", newline_if(waited_first))
}

fn newline_if(waited: bool) -> &'static str {
    if waited { "\n" } else { "" }
}
