//! temporary
mod chromium;
use chromium::Browser;
use pubgauge_report::{Logs, page, table};
use pubgauge_results::store;
#[test]
fn preview() {
    let mut browser = Browser::start();
    for dir in std::env::var("RUNS").unwrap().split(',') {
        let dir = std::path::Path::new(dir);
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        let results = store::load(dir).unwrap();
        let logs: Logs = results.trials.iter().filter_map(|t| Some((t.id, store::load_log(dir, t.id, "latency").ok()?))).collect();
        println!("{}", table(&results, 100));
        let html = page(&results, &logs);
        println!("{} bytes", html.len());
        std::fs::write(format!("/tmp/pics/{name}.html"), &html).unwrap();
        let which = std::env::var("WHICH").unwrap_or("wide,phone,dark,pdf".into());
        for (w, phone, scheme, key) in [(1400, false, "light", "wide"), (390, true, "light", "phone"), (1400, false, "dark", "dark")] {
            if !which.contains(key) { continue; }
            browser.size(w, 900, phone);
            browser.media("screen", scheme);
            browser.open(&html);
            println!("{key} {} {:?}", browser.eval("document.documentElement.scrollWidth"), browser.errors);
            browser.picture(&format!("{name}-{key}"));
        }
        if which.contains("pdf") {
            browser.call("Emulation.clearDeviceMetricsOverride", serde_json::json!({}));
            browser.media("", "light");
            browser.open(&html);
            let pdf = browser.pdf();
            std::fs::write(format!("/tmp/pics/{name}.pdf"), pdf).unwrap();
        }
    }
}
