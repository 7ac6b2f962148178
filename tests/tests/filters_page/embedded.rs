fn options(data: &Path, program: &Path) -> EngineOptions {
    let mut options = EngineOptions::new(data);
    // What runs the functions: `seqtide`, wherever it lies.
    options.functions.worker = Some(WorkerCommand::new(program, ["js-worker"]));
    options
}

async fn filters(shop: &Database) -> Result<Vec<Filter>, Box<dyn std::error::Error>> {
    let query = serde_json::from_str(r#"{"owner": "ann"}"#)?;
    Ok(vec![
        Filter::ids([DocId::parse("o-1")?, DocId::parse("c-1")?]),
        Filter::prefix("o-"),
        Filter::selector(Selector::from_json(r#"{"total": {"$gt": 100}}"#)?),
        Filter::conflicts_only(),
        Filter::function(shop.filter_function("app", "mine", query).await?),
        Filter::function(shop.view_function("app", "orders").await?),
    ])
}

async fn shown(shop: &Database, filter: Filter) -> Result<Vec<String>, seqtide::Error> {
    let options = ChangesOptions { since: Since::START, live: false, filter, ..ChangesOptions::default() };
    let mut changes = shop.changes(options).await?.only_changes();
    let mut ids = Vec::new();
    while let Some(change) = changes.next().await {
        ids.push(change?.id.to_string());
    }
    Ok(ids)
}
