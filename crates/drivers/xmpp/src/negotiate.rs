//! The negotiation of a stream: STARTTLS, login, binding (RFC 6120 §4.3, §5, §6, §7).

use pubgauge_driver::{ClientId, Encryption};
use pubgauge_net::login;

use crate::broken::Broken;
use crate::client::{Client, Request, Step};
use crate::requests::connected;
use crate::sasl::{Account, Login};
use crate::shared::Shared;
use crate::stanza::{Features, Stanza};
use crate::write;

/// Opens a stream, or opens it again after STARTTLS or login (RFC 6120 §4.3.3).
pub(crate) fn open_stream(client: &mut Client, shared: &mut Shared, id: ClientId, step: Step) {
    client.session.step = step;
    client.framer = crate::frame::Framer::default();
    let out = client.out.get_or_insert_with(|| shared.out_pool.get());
    let domain = &shared.endpoints[usize::from(client.endpoint)].domain;
    write::stream_header(&mut out.bytes, domain);
    shared.mark_dirty(client, id);
}

/// What concerns the negotiation of the stream (RFC 6120 §4.3, §5, §6, §7).
pub(crate) fn negotiate(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    stanza: Stanza,
) -> Result<(), Broken> {
    match (client.session.step, stanza) {
        (Step::Features, Stanza::Features(features)) => {
            features_came(client, shared, id, &features)
        }
        (Step::Proceed, Stanza::Proceed) => {
            let connection = shared.tls_connection(client);
            let connection = connection.map_err(|error| Broken::of(client, shared, error))?;
            client.tls = Some(connection);
            Ok(())
        }
        (Step::Proceed, Stanza::TlsFailure) => Err(Broken::of(
            client,
            shared,
            "the server refuses STARTTLS\n  hint: its certificate may be missing; its log may say why",
        )),
        (Step::Login, Stanza::Challenge(challenge)) => {
            let response = match client.session.login.as_mut() {
                Some(login) => login.response(&challenge),
                None => Err("a challenge that nobody asked for".into()),
            };
            let response =
                response.map_err(|error| Broken::of(client, shared, format!("SASL: {error}")))?;
            let out = client.out(&mut shared.out_pool);
            write::sasl(&mut out.bytes, None, &response);
            shared.mark_dirty(client, id);
            Ok(())
        }
        (Step::Login, Stanza::Success(data)) => {
            if let Some(mut login) = client.session.login.take() {
                login.success(&data).map_err(|error| {
                    Broken::of(
                        client,
                        shared,
                        format!("SASL: the server does not know the password it should: {error}"),
                    )
                })?;
            }
            open_stream(client, shared, id, Step::LoggedIn);
            Ok(())
        }
        (Step::Login, Stanza::SaslFailure(failure)) => {
            let name = client.session.login.as_ref().map_or("", Login::name);
            let (username, password) = (
                shared.endpoint(client).username.is_some(),
                shared.password.is_some(),
            );
            let (what, hint) = login::refused(shared.shown(client), username, password);
            Err(Broken::of(
                client,
                shared,
                format!(
                    "login by SASL {name} failed: {failure}: {what}\n  hint: {hint}; an account is USER of the domain in the address"
                ),
            ))
        }
        (Step::LoggedIn, Stanza::Features(features)) => {
            if !features.bind {
                return Err(Broken::of(
                    client,
                    shared,
                    "the server offers no resource binding",
                ));
            }
            if shared.options.direct && client.subscribes {
                // Its address is to be the topic that it subscribes to.
                connected(client, shared, id);
                return Ok(());
            }
            client.session.step = Step::Bind;
            let name = client.name.clone();
            bind(client, shared, id, &name, None);
            Ok(())
        }
        (step, _) => Err(Broken::of(
            client,
            shared,
            format!("the server said something else than was due ({step:?})"),
        )),
    }
}

fn features_came(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    features: &Features,
) -> Result<(), Broken> {
    let endpoint = shared.endpoint(client);
    if endpoint.net.encryption == Encryption::StartTls && client.tls.is_none() {
        if !features.starttls {
            return Err(Broken::of(
                client,
                shared,
                "the server does not offer STARTTLS\n  hint: give it a certificate and switch STARTTLS on, or use an xmpp:// endpoint, which is not encrypted",
            ));
        }
        let out = client.out(&mut shared.out_pool);
        out.bytes.extend_from_slice(write::STARTTLS);
        client.session.step = Step::Proceed;
        shared.mark_dirty(client, id);
        return Ok(());
    }
    let account = Account {
        shown: &endpoint.net.shown,
        username: endpoint.username.as_deref(),
        password: shared.password.as_ref(),
        private: endpoint.is_private(),
    };
    let login = Login::choose(shared.options.mechanism, &features.mechanisms, &account);
    let mut login = login.map_err(|error| Broken::of(client, shared, error))?;
    let out = client.out(&mut shared.out_pool);
    let first = login.initial();
    write::sasl(&mut out.bytes, Some(login.name()), &first);
    client.session.login = Some(login);
    client.session.step = Step::Login;
    shared.mark_dirty(client, id);
    Ok(())
}

/// Asks for an address with this resource, for a subscription's sake if there is a `report`.
pub(crate) fn bind(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    resource: &str,
    report: Option<u32>,
) {
    client.session.binding = true;
    let request = Request::Bind {
        resource: resource.into(),
        report,
    };
    let number = client.session.ask(request, 0);
    let out = client.out(&mut shared.out_pool);
    write::bind(&mut out.bytes, number, resource);
    shared.mark_dirty(client, id);
}
