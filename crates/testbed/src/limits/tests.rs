use super::*;

/// A host whose limits are high.
fn plenty() -> Available {
    Available {
        files_limit: 100_000,
        files_open: 10,
        ports: 28_232,
        threads: 10_000,
        threads_bound: "kernel.threads-max",
        memory_bytes: 8 << 30,
        memory_bound: "MemAvailable of /proc/meminfo",
    }
}

/// A thousand clients over TCP.
fn thousand() -> ResourceNeeds {
    ResourceNeeds {
        clients: 1000,
        files: 1002,
        one_file_each: true,
        workers: 2,
        library_threads: 0,
        server: Some(ServerNeeds {
            name: "mosquitto".into(),
            connections: 1000,
            files: 1009,
            limit: None,
        }),
        ports: 1000,
        memory: vec![
            ("1000 clients".into(), 4_000_000),
            ("nothing".into(), 0),
            ("2,000,000 pairs".into(), 200_000_000),
        ],
    }
}

#[test]
fn what_fits_is_said() {
    let fit_one_each = |clients| {
        let needs = ResourceNeeds {
            clients,
            files: clients + 2,
            one_file_each: true,
            ..ResourceNeeds::default()
        };
        move |limit| fit(&needs, 98, limit)
    };
    assert_eq!(fit_one_each(900)(1000), Ok(()));
    let error = fit_one_each(901)(1000).unwrap_err();
    assert_eq!((error.needed, error.fit), (1001, Some(900)));
    let text = error.to_string();
    for part in [
        "901 clients need 1001",
        "may open 1000: 900 clients would fit",
        "hint: plan at most 900 clients, or raise",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(fit_one_each(1)(10).unwrap_err().fit, Some(0));
    // Where links take descriptors too, the number of clients that would fit is not known.
    let links = ResourceNeeds {
        clients: 40,
        files: 998,
        ..ResourceNeeds::default()
    };
    let error = fit(&links, 36, 1000).unwrap_err();
    assert_eq!(error.fit, None);
    assert!(
        error
            .to_string()
            .contains("hint: plan fewer clients, or raise")
    );
}

#[test]
fn enough_of_everything_is_enough() {
    assert_eq!(check(&thousand(), &plenty()), Ok(()));
    assert_eq!(check(&ResourceNeeds::default(), &plenty()), Ok(()));
    let unlimited = Available {
        files_limit: u64::MAX,
        files_open: 0,
        ports: u64::MAX,
        threads: u64::MAX,
        threads_bound: "",
        memory_bytes: u64::MAX,
        memory_bound: "",
    };
    assert_eq!(check(&thousand(), &unlimited), Ok(()));
}

/// Looks for the lowest amount that passes a check, and for the error of one less.
fn least(mut passes: impl FnMut(u64) -> Result<(), Shortage>) -> (u64, Shortage) {
    let (mut low, mut high) = (0, 1 << 40);
    assert_eq!(passes(high), Ok(()));
    while low < high {
        let middle = (low + high) / 2;
        match passes(middle) {
            Ok(()) => high = middle,
            Err(_) => low = middle + 1,
        }
    }
    (low, passes(low - 1).unwrap_err())
}

#[test]
fn each_resource_is_refused_at_one_less_than_enough() {
    let with = |change: fn(&mut Available, u64)| {
        least(|amount| {
            let mut available = plenty();
            change(&mut available, amount);
            check(&thousand(), &available)
        })
    };
    let (files, error) = with(|a, n| a.files_limit = n);
    assert_eq!(error.resource(), Resource::Descriptors);
    // 1002 of the clients, 10 that are open, pubgauge's own and those of two workers, and those
    // of 64 threads in 12 processes.
    assert_eq!(files, 1002 + 10 + 32 + 8 + 2 * (64 + 12));
    let Shortage::Descriptors(few) = error else {
        panic!("{error}");
    };
    assert_eq!(few.fit, Some(999));

    let (ports, error) = with(|a, n| a.ports = n);
    assert_eq!((ports, error.resource()), (1000, Resource::Ports));
    for part in [
        "1000 local ports",
        "there are 999",
        "ip_local_port_range",
        "127.0.0.1",
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }

    let (threads, error) = with(|a, n| a.threads = n);
    assert_eq!((threads, error.resource()), (6, Resource::Threads));
    for part in ["6 threads", "5 more", "(kernel.threads-max)", "hint: "] {
        assert!(error.to_string().contains(part), "{error}");
    }

    let (memory, error) = with(|a, n| a.memory_bytes = n);
    assert_eq!((memory, error.resource()), (204_000_000, Resource::Memory));
    for part in [
        "about 195 MiB",
        "at the least",
        "(MemAvailable of /proc/meminfo): 1000 clients 3.81 MiB, 2,000,000 pairs 191 MiB\n",
        "hint: ",
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_server_that_is_started_here_has_our_limit_or_its_own() {
    let mut needs = thousand();
    let server = needs.server.as_mut().unwrap();
    server.files = 99_999;
    assert_eq!(check(&needs, &plenty()), Ok(()));
    needs.server.as_mut().unwrap().files = 100_001;
    let error = check(&needs, &plenty()).unwrap_err();
    assert_eq!(error.resource(), Resource::Descriptors);
    for part in [
        "mosquitto needs 100001 open files for 1000 connections",
        "may open 100000",
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let server = needs.server.as_mut().unwrap();
    (server.files, server.limit) = (1009, Some(1008));
    let error = check(&needs, &plenty()).unwrap_err();
    assert!(error.to_string().contains("may open 1008"), "{error}");
    // A system that is not started here is limited elsewhere.
    needs.server = None;
    assert_eq!(check(&needs, &plenty()), Ok(()));
}

#[test]
fn few_descriptors_are_not_kept_for_samplers() {
    assert!(files_beside(2, true, 1023) + 2 * 50 < files_beside(2, true, 1024));
    assert!(files_beside(2, true, 100) < 100);
    assert_eq!(files_beside(2, false, 100), files_beside(2, false, 100_000));
}

#[test]
fn the_soft_limit_becomes_the_hard_one() {
    let limit = raise_nofile().unwrap();
    let now = getrlimit(process::Resource::Nofile);
    assert_eq!((now.current, now.maximum), (Some(limit), Some(limit)));
    let clients = |clients| ResourceNeeds {
        clients,
        files: clients,
        one_file_each: true,
        ..ResourceNeeds::default()
    };
    assert!(check(&clients(1), &available()).is_ok());
    let shortage = check(&clients(limit), &available()).unwrap_err();
    assert!(matches!(shortage, Shortage::Descriptors(few) if few.limit == limit));
}
