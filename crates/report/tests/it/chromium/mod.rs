//! A headless Chromium driven by its DevTools protocol: just enough to open a page, run
//! expressions in it, and see every error and request.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

/// Height of one piece of a picture in CSS pixels.
const PIECE: f64 = 1800.0;

/// Only against hanging. Checks of the largest page take seconds alone, and a minute beside everything else.
const PATIENCE: Duration = Duration::from_secs(600);

pub struct Browser {
    child: Child,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    session: Option<String>,
    next: u64,
    /// Errors of the page: uncaught exceptions and whatever the console calls an error.
    pub errors: Vec<String>,
    /// Addresses that were asked for.
    pub requests: Vec<String>,
    folder: tempfile::TempDir,
}

impl Browser {
    pub fn start() -> Browser {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args(["--disable-dev-shm-usage", "--remote-debugging-port=0"])
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect(
                "the tests of the page need chromium on the path (Debian: apt install chromium)",
            );
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                line.strip_prefix("DevTools listening on ")
                    .map(str::to_owned)
            })
            .expect("chromium ended without opening its DevTools port");
        // Chromium blocks if nobody reads what it says.
        std::thread::spawn(move || lines.for_each(drop));
        let (mut socket, _) = tungstenite::connect(&address).unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_mut() {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        let mut browser = Browser {
            child,
            socket,
            session: None,
            next: 0,
            errors: Vec::new(),
            requests: Vec::new(),
            folder,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// One DevTools command; events that arrive meanwhile are kept.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut command = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.socket
            .send(Message::text(command.to_string()))
            .unwrap();
        loop {
            let message = self
                .socket
                .read()
                .unwrap_or_else(|why| panic!("{method}: {why}"));
            let Message::Text(text) = message else {
                continue;
            };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["id"] == json!(id) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.event(&message);
        }
    }

    fn event(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.errors.push(params["exceptionDetails"].to_string())
            }
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.errors.push(params["entry"].to_string());
            }
            Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                self.errors.push(params["args"].to_string());
            }
            Some("Network.requestWillBeSent") => {
                self.requests
                    .push(params["request"]["url"].as_str().unwrap_or("").to_owned());
            }
            _ => {}
        }
    }

    /// The value of an expression (a promise is waited for).
    pub fn eval(&mut self, expression: &str) -> Value {
        let result = self.call(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {}",
            result["exceptionDetails"]
        );
        result["result"]["value"].clone()
    }

    /// Opens a page that stands in a file and waits until it is drawn.
    pub fn open(&mut self, html: &str) {
        let file = self.folder.path().join("page.html");
        std::fs::write(&file, html).unwrap();
        self.requests.clear();
        self.call(
            "Page.navigate",
            json!({"url": format!("file://{}", file.display())}),
        );
        let start = Instant::now();
        while self.eval("document.readyState + document.documentElement?.dataset.drawn")
            != json!("completeyes")
        {
            assert!(start.elapsed() < PATIENCE, "not drawn: {:#?}", self.errors);
            assert!(self.errors.is_empty(), "{:#?}", self.errors);
            std::thread::sleep(Duration::from_millis(20));
        }
        // Figures are drawn as they come near; all of them after a print.
        self.eval(
            "dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'))",
        );
    }

    /// The size of the window in CSS pixels; `phone` is a phone with a touch screen.
    pub fn size(&mut self, width: u32, height: u32, phone: bool) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": if phone { 2 } else { 1 }, "mobile": phone}),
        );
    }

    /// Media type (`screen`, `print`) and colour scheme (`light`, `dark`).
    pub fn media(&mut self, kind: &str, scheme: &str) {
        self.call(
            "Emulation.setEmulatedMedia",
            json!({"media": kind, "features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
    }

    /// Writes a picture of the whole page to `$PUBGAUGE_PAGE_PICTURES/NAME.png`, where that is
    /// set: for people to look at, nothing is compared.
    pub fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("PUBGAUGE_PAGE_PICTURES") else {
            return;
        };
        let height = self
            .eval("document.documentElement.scrollHeight")
            .as_f64()
            .unwrap();
        let width = self.eval("innerWidth");
        // In pieces: few programs show a picture of 20,000 lines.
        for piece in 0..(height / PIECE).ceil() as u32 {
            let top = f64::from(piece) * PIECE;
            let clip = json!({"x": 0, "y": top, "width": width, "height": PIECE.min(height - top), "scale": 1});
            let shot = self.call(
                "Page.captureScreenshot",
                json!({"format": "png", "captureBeyondViewport": true, "clip": clip}),
            );
            self.write(
                &Path::new(&folder).join(format!("{name}-{piece}.png")),
                &shot["data"],
            );
        }
    }

    fn write(&self, path: &Path, base64: &Value) {
        std::fs::write(path, decode(base64.as_str().unwrap())).unwrap();
    }

    /// The page on paper (A4).
    pub fn pdf(&mut self) -> Vec<u8> {
        let pdf = self.call(
            "Page.printToPDF",
            json!({"preferCSSPageSize": false, "printBackground": true, "paperWidth": 8.27, "paperHeight": 11.69}),
        );
        let bytes = decode(pdf["data"].as_str().unwrap());
        if let Some(folder) = std::env::var_os("PUBGAUGE_PAGE_PICTURES") {
            std::fs::write(Path::new(&folder).join("page.pdf"), &bytes).unwrap();
        }
        bytes
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // By its own word first, so that its helpers end with it.
        let _ = self
            .socket
            .send(Message::text(r#"{"id":0,"method":"Browser.close"}"#));
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(5) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn decode(base64: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for four in base64.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four
            .iter()
            .fold(0u32, |bits, c| bits << 6 | u32::from(value(*c)));
        let bits = bits << (6 * (4 - four.len()));
        out.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    out
}

/// Clicks a figure's button and gives back the file that it saves.
pub const SAVED: &str = "
    window.saved = (id, kind) => new Promise((resolve, reject) => {
        const button = document.querySelector(`#${id} button[data-save=${kind}]`);
        const original = URL.createObjectURL;
        URL.createObjectURL = (blob) => { URL.createObjectURL = original; blob.text().then(resolve, reject); return original.call(URL, blob); };
        HTMLAnchorElement.prototype.click = function () { window.savedName = this.download; };
        button.click();
    }); true";

/// The file that a button of a figure saves, once [`SAVED`] has run.
pub fn saved(browser: &mut Browser, id: &str, kind: &str) -> String {
    let text = browser.eval(&format!("saved({id:?}, {kind:?})"));
    assert_eq!(browser.eval("savedName"), json!(format!("{id}.{kind}")));
    text.as_str().unwrap().to_owned()
}
