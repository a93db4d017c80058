import ThicketProtocol

/// What the server stores of an account with keys, as reported by the server: for users who want to inspect it.
public struct ServerView: Sendable {
    /// The parameters of the key derivation; nil when there is no password.
    public let pin: PasswordPin?
    /// The sealed bundle.
    public let bundle: [UInt8]
    /// The version of the bundle.
    public let version: UInt64
    /// The access key sealed under a content passphrase, for a partner's user who has one.
    public let access: [UInt8]?
}

/// An object as the server returns it, unopened.
public struct StoredObject: Sendable {
    /// The server's key of the object.
    public let key: String
    /// The object's version.
    public let version: Int64
    /// The JSON as the server wrote it.
    public let text: String
}

extension Accounts {
    /// Reads what the server stores of the account.
    ///
    /// - Throws: `server`, `bundleMissing`.
    public func serverView(of account: OpenAccount, accessToken: String) async throws(AccountError) -> ServerView {
        try await api.run(ViewFlow(account, asker(account, accessToken)))
    }
}

private struct ViewFlow: AccountFlow {
    typealias Outcome = ServerView

    private let account: OpenAccount
    private let asker: AccountRequest.Asker
    private var pin: PasswordPin?
    private var isReading = false

    init(_ account: OpenAccount, _ asker: AccountRequest.Asker) { (self.account, self.asker) = (account, asker) }

    mutating func begin() throws(AccountError) -> AccountStep<ServerView> {
        guard case .user = asker else {
            isReading = true
            return .ask(.readBundle(asker))
        }
        return .ask(.prelogin(try AccountName(account.name)))
    }

    mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<ServerView> {
        switch event {
        case .answered(let reply) where isReading:
            guard !reply.isNull("bundle") else { throw .bundleMissing }
            let access = reply.isNull("access") ? nil : try reply.octets("access")
            if access != nil { pin = try reply.pin(isBare: true) }
            return .done(
                ServerView(
                    pin: pin, bundle: try reply.octets("bundle"), version: try reply.version(), access: access))
        case .answered(let reply):
            pin = try reply.pin()
            isReading = true
            return .ask(.readBundle(asker))
        case .refused(let error): throw .server(error)
        case .stretched: throw outOfStep()
        }
    }
}

extension ClientSession {
    /// Most objects that `storedObjects` returns.
    public static let storedObjectsMax = 100

    /// The first objects of a bucket as the server stores them, for users who want to inspect them; sealed objects stay
    /// sealed.
    ///
    /// - Throws: as `calling`.
    public func storedObjects(of bucket: String) async throws(ClientError) -> [StoredObject] {
        do { _ = try BucketName(bucket) } catch { throw ClientError(.invalidName, error.description) }
        let calls = calls
        let path = "/1/\(calls.app)/\(bucket)/index?data=1&limit=\(Self.storedObjectsMax)"
        let answer = try await calling { token throws(ClientError) in
            try await calls.ask("GET", path, fields: calls.partnerTokenFields(token))
        }
        guard case .array(let items)? = try ServerCalls.object(answer)["index"] else {
            throw ClientError(.protocolViolation, "the server's answer has no index")
        }
        return items.compactMap { item in
            guard let key = item["id"]?.stringValue, let version = item["v"]?.intValue,
                let data = item["d"]
            else { return nil }
            return StoredObject(key: key, version: version, text: data.serializedText)
        }
    }
}
