import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Requests by which a new device gets an account's keys from an old one. They need neither a key nor a token: what
/// is kept is small, short-lived and opaque, and users of partners have neither.
extension AccountService {
    /// Requests about pairings a minute from one address: a new device polls every two seconds.
    static let pairingsPerMinute = 120

    mutating func openPairing(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        try admitPairing(asked)
        let hello = try Self.sealed(
            "hello", try AccountBody(asked.request.body), max: PairingBoxes.helloBytesMax)
        do throws(PairingBoxes.Failure) {
            try boxes.open(hello, app: asked.app.text, now: asked.now)
        } catch { throw Self.refusal(error) }
        return AccountAnswer.success(["expires": .number(JSONNumber(Int64(PairingBoxes.lifetime)))])
    }

    mutating func pairing(_ code: String, _ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        try admitPairing(asked)
        guard asked.request.method == "PUT" else { return try lookAtPairing(code, asked) }
        let answer = try Self.sealed(
            "sealed", try AccountBody(asked.request.body), max: PairingBoxes.answerBytesMax)
        do throws(PairingBoxes.Failure) {
            try boxes.answer(code, app: asked.app.text, answer, now: asked.now)
        } catch { throw Self.refusal(error) }
        return AccountAnswer.done
    }

    private mutating func lookAtPairing(_ code: String, _ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let found: (hello: [UInt8], answer: [UInt8]?)
        do throws(PairingBoxes.Failure) {
            found = try boxes.look(code, app: asked.app.text, now: asked.now)
        } catch { throw Self.refusal(error) }
        return AccountAnswer.success([
            "hello": .string(Base64.encodeURL(found.hello)),
            "sealed": found.answer.map { .string(Base64.encodeURL($0)) } ?? .null,
        ])
    }

    private mutating func admitPairing(_ asked: Asked) throws(AccountRefusal) {
        try admit(pairings, asked.address, .pairings, asked)
        pairings.add(asked.address, now: asked.now)
    }

    private static func refusal(_ failure: PairingBoxes.Failure) -> AccountRefusal {
        switch failure {
        case .full: .limited(.pairings, seconds: Int(PairingBoxes.lifetime))
        case .taken: .pairingTaken
        case .gone: .noPairing
        }
    }

    /// A token for another device. The request must prove the account's access key beside a token: a token alone
    /// cannot make another.
    mutating func addToken(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        let before = try user(asked).account
        let shown = secrets.verifier(try Self.bytes("r", body))
        let device = try Self.device(body)
        guard let proof = before.keyProof else {
            throw .badRequest("this account has no client-side keys")
        }
        let place = "words \(Self.place(before.name, asked))"
        try admitProof(place, asked)
        guard ConstantTime.equal(shown, proof.recovery) else { throw failed(place, asked) }
        proved(place)
        return AccountAnswer.success(["access_token": .string(try admitToken(before, asked, device: device))])
    }
}
