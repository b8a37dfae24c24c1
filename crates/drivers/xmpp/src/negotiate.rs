//! The negotiation of a stream: STARTTLS, login, binding (RFC 6120 §4.3, §5, §6, §7).

use pubgauge_driver::Encryption;
use pubgauge_net::fleet::Broken;

use crate::client::{NegotiationStep, Request, XmppLink};
use crate::requests::connected;
use crate::sasl::{Account, EXTERNAL, Login};
use crate::shared::Xmpp;
use crate::stanza::{Features, Stanza};
use crate::write;

/// Why a server does not take a certificate for an account, and what to do.
const CERTIFICATE_REFUSED: &str = "the server does not take this client's certificate for the account\n  hint: the certificate has \
     the account, USER@DOMAIN, as XmppAddr among its alternative names (RFC 6120, section 13.7.1.4), and is signed by an authority \
     that the server trusts";

/// Opens a stream, or opens it again after STARTTLS or login (RFC 6120 §4.3.3).
pub(crate) fn open_stream(xmpp: &Xmpp, link: &mut XmppLink<'_>, step: NegotiationStep) {
    link.client.own.session.step = step;
    link.client.own.framer = crate::frame::Framer::default();
    let domain = &xmpp.endpoint(link).domain;
    write::stream_header(&mut link.out().bytes, domain);
}

/// Acts on a stanza of the stream's negotiation (RFC 6120 §4.3, §5, §6, §7).
pub(crate) fn negotiate(
    xmpp: &mut Xmpp,
    link: &mut XmppLink<'_>,
    stanza: Stanza,
) -> Result<(), Broken> {
    match (link.client.own.session.step, stanza) {
        (NegotiationStep::Features, Stanza::Features(features)) => {
            features_came(xmpp, link, &features)
        }
        (NegotiationStep::Proceed, Stanza::Proceed) => {
            link.start_tls()
        }
        (NegotiationStep::Proceed, Stanza::TlsFailure) => Err(link.broken("the server refuses STARTTLS\n  hint: its certificate may be missing; its log may say why",
        )),
        (NegotiationStep::Login, Stanza::Challenge(challenge)) => {
            let response = match link.client.own.session.login.as_mut() {
                Some(login) => login.response(&challenge),
                None => Err("a challenge that nobody asked for".into()),
            };
            let response =
                response.map_err(|error| link.broken(format!("SASL: {error}")))?;
            let out = link.out();
            write::sasl(&mut out.bytes, None, &response);
            Ok(())
        }
        (NegotiationStep::Login, Stanza::Success(data)) => {
            if let Some(mut login) = link.client.own.session.login.take() {
                login.success(&data).map_err(|error| {
                    link.broken(format!("SASL: the server does not know the password it should: {error}"),
                    )
                })?;
            }
            open_stream(xmpp, link, NegotiationStep::LoggedIn);
            Ok(())
        }
        (NegotiationStep::Login, Stanza::SaslFailure(failure)) => {
            let name = link.client.own.session.login.as_ref().map_or("", Login::name);
            if name == EXTERNAL {
                return Err(link.broken(format!("login by SASL {name} failed: {failure}: {CERTIFICATE_REFUSED}")));
            }
            let (what, hint) = link.login_refused();
            Err(link.broken(format!(
                    "login by SASL {name} failed: {failure}: {what}\n  hint: {hint}; an account is USER of the domain in the address"
                ),
            ))
        }
        (NegotiationStep::LoggedIn, Stanza::Features(features)) => {
            if !features.bind {
                return Err(link.broken("the server offers no resource binding",
                ));
            }
            if xmpp.options.direct && link.client.own.subscribes {
                // Its address is to be the topic that it subscribes to.
                connected(xmpp, link);
                return Ok(());
            }
            link.client.own.session.step = NegotiationStep::Bind;
            let name = link.client.name.clone();
            bind(link, &name, None);
            Ok(())
        }
        (step, _) => Err(link.broken(format!("the server said something else than was due ({step:?})"),
        )),
    }
}

fn features_came(
    xmpp: &mut Xmpp,
    link: &mut XmppLink<'_>,
    features: &Features,
) -> Result<(), Broken> {
    let endpoint = xmpp.endpoint(link);
    if endpoint.net.encryption == Encryption::StartTls && !link.client.has_tls() {
        if !features.starttls {
            return Err(link.broken("the server does not offer STARTTLS\n  hint: give it a certificate and switch STARTTLS on, or use an xmpp:// endpoint, which is not encrypted",
            ));
        }
        let out = link.out();
        out.bytes.extend_from_slice(write::STARTTLS);
        link.client.own.session.step = NegotiationStep::Proceed;
        return Ok(());
    }
    let account = Account {
        shown: &endpoint.net.shown,
        username: xmpp.username(link),
        password: link.password(),
        domain: &endpoint.domain,
        certificate: link.client.has_tls() && (link.has_own_certificate() || xmpp.has_certificate),
        own: link.login_parts().own,
        private: endpoint.is_private(),
    };
    let login = Login::choose(xmpp.options.mechanism, &features.mechanisms, &account);
    let mut login = login.map_err(|error| link.broken(error))?;
    let out = link.out();
    let first = login.initial();
    write::sasl(&mut out.bytes, Some(login.name()), &first);
    link.client.own.session.login = Some(login);
    link.client.own.session.step = NegotiationStep::Login;
    Ok(())
}

/// Asks for an address with this resource, for a subscription's sake if there is a `report`.
pub(crate) fn bind(link: &mut XmppLink<'_>, resource: &str, report: Option<u32>) {
    link.client.own.session.binding = true;
    let request = Request::Bind {
        resource: resource.into(),
        report,
    };
    let number = link.client.own.session.ask(request, 0);
    let out = link.out();
    write::bind(&mut out.bytes, number, resource);
}
