//! Tests of the rules of each setting.

use std::path::Path;

use super::*;

fn resolve(layer: Layer) -> Result<Config, InvalidConfig> {
    layer.resolve(&|name| (name == "HOME").then(|| "/somewhere".to_owned()))
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let config = resolve(Layer::default()).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:7700");
    assert_eq!(config.data_dir, Path::new("/somewhere/.local/share/slipway"));
    assert_eq!(config.database_url.expose(), "sqlite:/somewhere/.local/share/slipway/slipway.db");
    assert_eq!(config.reconcile_interval, Duration::from_secs(30));
    assert_eq!(config.lease, Duration::from_secs(30));
    assert_eq!(config.token_lifetimes, TokenLifetimes::default());
    assert_eq!(config.deadlines, Deadlines::default());
    let days = |days: u64| Duration::from_secs(days * 86_400);
    let kept = Retention { events: days(30), history: days(365), audit: days(365) };
    assert_eq!((config.retention, config.event_log), (kept, None));
    assert_eq!((config.kubeconfig_dir, &*config.system_namespace), (None, "slipway-system"));
    let placement = config.placement;
    assert_eq!((&*placement.role, &*placement.secret_store), ("slipway-project-viewer", "slipway"));
    assert!(placement.subjects.is_empty(), "{placement:?}");
    assert_eq!((placement.quota["count/secrets"], placement.quota["count/configmaps"]), (100, 100));
}

#[test]
fn each_wrong_setting_is_named() {
    let some = |text: &str| Some(text.to_owned());
    let table = [
        ("listen", Layer { listen: some("nowhere"), ..Layer::default() }),
        ("probe_listen", Layer { probe_listen: some("7701"), ..Layer::default() }),
        ("tls_key", Layer { tls_cert: Some("a".into()), ..Layer::default() }),
        ("tls_cert", Layer { tls_key: Some("a".into()), ..Layer::default() }),
        ("reconcile_interval", Layer { reconcile_interval: some("0s"), ..Layer::default() }),
        ("reconcile_interval", Layer { reconcile_interval: some("-5s"), ..Layer::default() }),
        ("reconcile_interval", Layer { reconcile_interval: some("soon"), ..Layer::default() }),
        ("lease", Layer { lease: some("2s"), ..Layer::default() }),
        ("token_ttl", Layer { token_ttl: some("1m"), ..Layer::default() }),
        ("token_ttl", Layer { token_ttl: some("25h"), ..Layer::default() }),
        ("token_env", Layer { token_env: some("Live!"), ..Layer::default() }),
        ("node_image", Layer { node_image: some("a b"), ..Layer::default() }),
        ("public_url", Layer { public_url: some("ftp://x"), ..Layer::default() }),
        ("namespace_prefix", Layer { namespace_prefix: some("A"), ..Layer::default() }),
        ("database_connections", Layer { database_connections: Some(0), ..Layer::default() }),
        ("local_cluster", Layer { local_cluster: some("Not A Name"), ..Layer::default() }),
        ("event_retention", Layer { event_retention: some("0d"), ..Layer::default() }),
        ("audit_retention", Layer { audit_retention: some("long"), ..Layer::default() }),
        ("history_retention", Layer { history_retention: some("9999d"), ..Layer::default() }),
        ("system_namespace", Layer { system_namespace: some("A b"), ..Layer::default() }),
        ("namespace_role", Layer { namespace_role: some("a/b"), ..Layer::default() }),
        ("secret_store", Layer { secret_store: some(""), ..Layer::default() }),
        ("stop_grace", Layer { stop_grace: some("x"), ..Layer::default() }),
    ];
    for (key, layer) in table {
        assert_eq!(resolve(layer).unwrap_err().key, key);
    }
}

/// Keys would be sent in the clear.
#[test]
fn outside_loopback_a_listener_needs_tls_or_a_proxy() {
    let at = |listen: &str| Layer { listen: Some(listen.to_owned()), ..Layer::default() };
    for own in ["127.0.0.1:1", "127.8.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        resolve(at(own)).unwrap_or_else(|error| panic!("{own}: {error}"));
    }
    for others in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[2001:db8::1]:1"] {
        let error = resolve(at(others)).unwrap_err();
        assert_eq!((error.key.as_str(), error.code()), ("listen", "listen_unprotected"));
        for remedy in ["tls_cert", "tls_key", "behind_proxy", "127.0.0.1"] {
            assert!(error.problem.contains(remedy), "{error}");
        }
        let proxied = Layer { behind_proxy: Some(ProxyHeader::Forwarded), ..at(others) };
        resolve(proxied).unwrap();
        let (tls_cert, tls_key) = (Some("a".into()), Some("b".into()));
        let config = resolve(Layer { tls_cert, tls_key, ..at(others) }).unwrap();
        assert!(config.tls.unwrap().key.is_absolute());
        // Probes have no secret.
        resolve(Layer { probe_listen: Some(others.to_owned()), ..Layer::default() }).unwrap();
    }
}

#[test]
fn a_proxy_is_named_by_a_switch_a_value_or_a_file() {
    use clap::FromArgMatches;
    let of = |arguments: &[&str]| {
        let command = Layer::augment_args(clap::Command::new("up").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).unwrap();
        Layer::from_arg_matches(&matches).unwrap().behind_proxy
    };
    assert_eq!(of(&[]), None);
    assert_eq!(of(&["--behind-proxy"]), Some(ProxyHeader::XForwardedFor));
    assert_eq!(of(&["--behind-proxy", "--listen", "x"]), Some(ProxyHeader::XForwardedFor));
    assert_eq!(of(&["--behind-proxy=forwarded"]), Some(ProxyHeader::Forwarded));
    let file: Layer = toml::from_str("behind_proxy = \"x-forwarded-for\"").unwrap();
    assert_eq!(file.behind_proxy, Some(ProxyHeader::XForwardedFor));
}

#[test]
fn flags_win_over_the_file_and_the_file_over_the_documents_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slipway.toml");
    std::fs::write(&file, "token_ttl = \"2h\"\nreconcile_interval = \"10s\"\n").unwrap();
    let flags =
        Layer { config: Some(file), reconcile_interval: Some("5s".to_owned()), ..Layer::default() };
    let environment = |name: &str| match name {
        "HOME" => Some("/somewhere".to_owned()),
        "PLEXSPHERE_PROVISIONING_BROKER_TOKEN_TTL" => Some("3h".to_owned()),
        "PLEXSPHERE_DSN" => Some("postgres://db/slipway".to_owned()),
        _ => None,
    };
    let config = flags.resolve(&environment).unwrap();
    assert_eq!(config.reconcile_interval, Duration::from_secs(5));
    assert_eq!(config.token_lifetimes.ttl, Duration::from_secs(7_200));
    assert_eq!(config.database_url.expose(), "postgres://db/slipway");
}

/// Each of the documents' three names sets what it names, and is refused by the same rule.
#[test]
fn the_documents_names_are_accepted() {
    let with = |wanted: &'static str, value: &'static str| {
        Layer::default().resolve(&move |name: &str| match name {
            "HOME" => Some("/somewhere".to_owned()),
            name if name == wanted => Some(value.to_owned()),
            _ => None,
        })
    };
    let config = with("PLEXSPHERE_DSN", "postgres://db/slipway").unwrap();
    assert_eq!(config.database_url.expose(), "postgres://db/slipway");
    let interval = "PLEXSPHERE_PROVISIONING_BROKER_RECONCILE_INTERVAL";
    assert_eq!(with(interval, "7s").unwrap().reconcile_interval, Duration::from_secs(7));
    let refused = with(interval, "0s").unwrap_err().to_string();
    assert!(refused.contains("reconcile_interval"), "{refused}");
    let ttl = "PLEXSPHERE_PROVISIONING_BROKER_TOKEN_TTL";
    assert_eq!(with(ttl, "2h").unwrap().token_lifetimes.ttl, Duration::from_secs(7_200));
    let refused = with(ttl, "1s").unwrap_err().to_string();
    assert!(refused.contains("token_ttl"), "{refused}");
}

#[test]
fn a_fault_in_the_file_shows_its_line_and_not_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slipway.toml");
    let text = "token_ttl = \"2h\"\ndatabase_url = \"postgres://me:hunter2@db/slipway\n";
    std::fs::write(&file, text).unwrap();
    let error = resolve(Layer { config: Some(file), ..Layer::default() }).unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains("line 2") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_typo_in_the_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slipway.toml");
    std::fs::write(&file, "tokenttl = \"2h\"\n").unwrap();
    let error = resolve(Layer { config: Some(file), ..Layer::default() }).unwrap_err();
    assert!(error.to_string().contains("tokenttl"), "{error}");
}

#[test]
fn a_typo_names_the_nearest_key_and_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slipway.toml");
    for (text, words) in [
        ("\ntokenttl = \"2h\"\n", ["line 2", "did you mean `token_ttl`?"]),
        ("colour = 1\n", ["line 1", "`colour` is no setting"]),
        ("admin_key = \"hunter2\"\n", ["line 1", "not taken from a file"]),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = resolve(Layer { config: Some(file.clone()), ..Layer::default() }).unwrap_err();
        let shown = error.to_string();
        assert!(words.iter().all(|word| shown.contains(word)), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn subjects_and_quotas_are_checked_one_by_one() {
    let subjects = |text: &str| Layer {
        namespace_subjects: Some(vec!["group:team-a".to_owned(), text.to_owned()]),
        ..Layer::default()
    };
    for good in ["user:jane@example.org", "serviceaccount:ns/name", "group:oidc:team"] {
        assert_eq!(resolve(subjects(good)).unwrap().placement.subjects[1], good);
    }
    for wrong in ["", "jane", "group:", "serviceaccount:name", "robot:a"] {
        let error = resolve(subjects(wrong)).unwrap_err();
        assert_eq!(error.key, "namespace_subjects");
        assert!(error.problem.contains(&format!("`{wrong}`")), "{error}");
    }
    let quota = |text: &str| {
        let given = placement::quota_in_text(text).unwrap();
        resolve(Layer { namespace_quota: Some(given), ..Layer::default() })
    };
    assert_eq!(quota("").unwrap().placement.quota.len(), 0, "no limit at all");
    let some = quota("count/secrets=5, count/deployments.apps=7").unwrap().placement.quota;
    assert_eq!((some["count/secrets"], some["count/deployments.apps"]), (5, 7));
    for wrong in ["=1", "a b=1"] {
        assert_eq!(quota(wrong).unwrap_err().key, "namespace_quota", "{wrong}");
    }
    for wrong in ["a", "a=", "a=-1", "a=many"] {
        assert!(placement::quota_in_text(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn placement_settings_are_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slipway.toml");
    let text = "kubeconfig_dir = \"/etc/slipway/kube\"\nnamespace_subjects = [\"group:a\"]\n\
                namespace_quota = { \"count/secrets\" = 5 }\n";
    std::fs::write(&file, text).unwrap();
    let config = resolve(Layer { config: Some(file), ..Layer::default() }).unwrap();
    assert_eq!(config.kubeconfig_dir.as_deref(), Some(Path::new("/etc/slipway/kube")));
    assert_eq!(config.placement.subjects, ["group:a"]);
    let quota: Vec<_> = config.placement.quota.into_values().collect();
    assert_eq!(quota, [5]);
}

#[test]
fn every_setting_has_a_value_to_show() {
    let config = resolve(Layer::default()).unwrap();
    let shown = show::values(&config, None);
    let mut expected = keys::all();
    let mut seen: Vec<_> = shown.iter().map(|(key, _)| (*key).to_owned()).collect();
    expected.sort();
    seen.sort();
    assert_eq!(seen, expected);
}

#[test]
fn a_password_is_never_shown() {
    for (url, shown) in [
        ("postgres://me:hunter2@db:5432/x", "postgres://me:***@db:5432/x"),
        ("postgres://me:hunt@er2@db/x?sslmode=disable", "postgres://me:***@db/x?***"),
        ("postgres://me@db/x", "postgres://me@db/x"),
        ("postgres://db/x?password=hunter2", "postgres://db/x?***"),
        ("hunter2", "***"),
        ("sqlite:/data/slipway.db", "sqlite:/data/slipway.db"),
    ] {
        assert_eq!(show::without_password(url), shown);
    }
}

#[test]
fn a_time_is_written_as_it_is_read() {
    for text in ["30s", "90s", "5m", "24h", "1500ms"] {
        let read = duration("x", Some(text.to_owned()), Duration::ZERO).unwrap();
        let again = duration("x", Some(show::written(read)), Duration::ZERO).unwrap();
        assert_eq!(read, again, "{text}");
    }
}

#[test]
fn variables_that_nothing_reads_are_named_with_the_nearest() {
    let command = Layer::augment_args(clap::Command::new("slipway"));
    let present = ["SLIPWAY_LISTN", "SLIPWAY_LISTEN", "SLIPWAY_TEST_ORDERS", "PATH", "SLIPWAY_X"];
    let warnings = keys::unknown_variables(&command, present.map(str::to_owned));
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert_eq!(warnings[0], "nothing reads SLIPWAY_LISTN; did you mean SLIPWAY_LISTEN?");
    assert!(warnings[1].starts_with("nothing reads SLIPWAY_X;"), "{warnings:?}");
}
