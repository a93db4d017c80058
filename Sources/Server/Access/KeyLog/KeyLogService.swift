import ThicketAuth
import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// Answers requests about keys. Works on the one thread of its store.
struct KeyLogService {
    /// Look-ups of one user a minute: a device that opens a conversation of many looks each of them up.
    static let lookupsPerMinute = 600
    /// Look-ups by name of one user a minute: each tells whether a name exists.
    static let namesPerMinute = 120
    /// Requests of one user a minute that append entries.
    static let appendsPerMinute = 30
    /// Bad tokens a minute from one address.
    static let failuresPerMinute = 120

    /// One request while it is answered.
    struct Asked {
        let request: HTTPRequest
        let app: AppID
        /// The client's address, as text.
        let address: String
        /// Milliseconds since 1970.
        let now: Int64

        var seconds: Double { Double(now) / 1_000 }
        var query: RESTQuery { RESTQuery(request.query) }
    }

    /// A request that is answered otherwise than with a result.
    struct Refusal: Error {
        let response: HTTPResponse
        /// For the log; nil when the client caused it.
        var failure: String?

        init(_ response: HTTPResponse, failure: String? = nil) { (self.response, self.failure) = (response, failure) }

        init(_ fault: KeyLogs.Fault) { self.init(KeyLogAnswer.unavailable, failure: fault.description) }
        init(_ error: DirectoryError) { self.init(KeyLogAnswer.unavailable, failure: error.description) }
    }

    let store: KeyLogStore
    let logs: KeyLogs
    let key: LogKey
    /// nil without partners.
    var partners: PartnerService?
    private var failures = AttemptMeter(perMinute: Self.failuresPerMinute)
    private var lookups = AttemptMeter(perMinute: Self.lookupsPerMinute)
    private var names = AttemptMeter(perMinute: Self.namesPerMinute)
    private var appends = AttemptMeter(perMinute: Self.appendsPerMinute)
    /// Public keys by app: deriving one takes longer than a look-up.
    private var keys = [String: Ed25519.SigningKey]()
    /// Heads that were signed and are not on disk yet, by app.
    private var heads = [String: KeyLogHead]()
    private var keptHeads = [String: KeyLogHead]()
    private var witnesses: KeyLogWitnesses

    init(
        store: KeyLogStore, logs: KeyLogs, key: LogKey, partners: PartnerService?,
        witnesses: [Ed25519.VerifyingKey] = []
    ) {
        (self.store, self.logs, self.key, self.partners) = (store, logs, key, partners)
        self.witnesses = KeyLogWitnesses(witnesses)
    }

    mutating func answer(_ asked: Asked, to call: KeyLogRoute.Call) throws(Refusal) -> HTTPResponse {
        let user = try self.user(asked)
        switch call {
        case .keys(let name): return try lookUp(name, user, asked)
        case .name: return try lookUpName(user, asked)
        case .entries: return try append(user, asked)
        case .head: return try head(asked)
        case .consistency: return try consistency(asked)
        case .witness: return try confirm(user, asked)
        }
    }

    /// Stores the heads that were given out. They are not what a client waits for: the entries that they state were on
    /// disk before, and a restart signs the same state again.
    mutating func keepHeads() throws(DirectoryError) {
        for (app, head) in heads { try store.keep(head, of: app) }
        for (app, head) in heads { keptHeads[app] = head }
        heads = [:]
    }

    // MARK: The user

    private mutating func user(_ asked: Asked) throws(Refusal) -> String {
        if let seconds = failures.wait(asked.address, now: asked.seconds) {
            throw Refusal(KeyLogAnswer.tooMany(seconds: seconds))
        }
        if partners != nil, PartnerService.hasLoginToken(asked.request) { return try partnersUser(asked) }
        let token =
            asked.request.fields.count(of: "x-simperium-token") == 1
            ? asked.request.fields["x-simperium-token"] ?? "" : ""
        let found: String?
        do throws(DirectoryError) {
            found = try store.owner(ofToken: Hash.sha256(Array(token.utf8)), in: asked.app.text, now: asked.now)
        } catch { throw Refusal(error) }
        guard let found else {
            failures.add(asked.address, now: asked.seconds)
            throw Refusal(KeyLogAnswer.badToken)
        }
        return found
    }

    private mutating func partnersUser(_ asked: Asked) throws(Refusal) -> String {
        do {
            return try partners?.user(of: asked.request, in: asked.app, now: asked.seconds) ?? ""
        } catch let refusal as TokenRefusal {
            if refusal != .expired { failures.add(asked.address, now: asked.seconds) }
            throw Refusal(KeyLogAnswer.badToken)
        } catch {
            throw Refusal(KeyLogAnswer.unavailable, failure: "\(error)")
        }
    }

    private func admit(_ meter: inout AttemptMeter, _ user: String, _ asked: Asked) throws(Refusal) {
        let name = "\(asked.app.text) \(user)"
        if let seconds = meter.wait(name, now: asked.seconds) { throw Refusal(KeyLogAnswer.tooMany(seconds: seconds)) }
        meter.add(name, now: asked.seconds)
    }

    // MARK: Look-ups

    private mutating func lookUp(_ user: String, _ by: String, _ asked: Asked) throws(Refusal) -> HTTPResponse {
        var meter = lookups
        try admit(&meter, by, asked)
        lookups = meter
        guard let user = try? UserID(user).text else { throw Refusal(KeyLogAnswer.invalid("the user's id is invalid")) }
        let (from, known) = (try Self.number("from", asked), try Self.number("known", asked))
        let lookup = try asking(asked) { (log, head) throws(KeyLogError) in
            try log.lookup(user, from: from, known: known, head: head)
        }
        return KeyLogAnswer.success(["lookup": .string(Base64.encodeURL(lookup.bytes))])
    }

    private mutating func lookUpName(_ by: String, _ asked: Asked) throws(Refusal) -> HTTPResponse {
        var meter = names
        try admit(&meter, by, asked)
        names = meter
        guard let name = asked.query["name"] else { throw Refusal(KeyLogAnswer.invalid("name is required")) }
        let folded = KeyLogHandle.folded(name)
        guard let handle = try? KeyLogHandle.name(folded, app: asked.app.text) else {
            throw Refusal(KeyLogAnswer.invalid("name is too long"))
        }
        let user: String?
        do throws(DirectoryError) { user = try store.user(named: folded, in: asked.app.text) } catch {
            throw Refusal(error)
        }
        let (from, fromName) = (try Self.number("from", asked), try Self.number("from_name", asked))
        let known = try Self.number("known", asked)
        // Both answers are about one head.
        let (ofName, ofUser) = try asking(asked) { (log, head) throws(KeyLogError) -> (KeyLogLookup, KeyLogLookup?) in
            (
                try log.lookup(handle, from: fromName, known: known, head: head),
                try user.map { (user) throws(KeyLogError) in
                    try log.lookup(user, from: from, known: known, head: head)
                }
            )
        }
        return KeyLogAnswer.success([
            "user": user.map(JSONValue.string) ?? .null, "name_lookup": .string(Base64.encodeURL(ofName.bytes)),
            "lookup": ofUser.map { .string(Base64.encodeURL($0.bytes)) } ?? .null,
        ])
    }

    private mutating func head(_ asked: Asked) throws(Refusal) -> HTTPResponse {
        let rotations: [[UInt8]]
        do throws(DirectoryError) { rotations = try store.rotations(of: asked.app.text) } catch { throw Refusal(error) }
        var head: KeyLogHead?
        do throws(Refusal) {
            head = try asking(asked) { (_, head) throws(KeyLogError) in head }
        } catch { if error.response.status != 404 { throw error } }
        return KeyLogAnswer.success([
            "key": .string(Base64.encodeURL(signingKey(asked.app.text).verifyingKey.octets)),
            "head": head.map { .string(Base64.encodeURL($0.bytes)) } ?? .null,
            "rotations": .array(rotations.map { .string(Base64.encodeURL($0)) }),
            "witnesses": witnesses.list(
                of: asked.app.text, logKey: signingKey(asked.app.text).verifyingKey, now: UInt64(max(0, asked.now))),
        ])
    }

    /// Keeps a witness's confirmation, which devices get with the head. The witness's signature gives the right.
    private mutating func confirm(_ user: String, _ asked: Asked) throws(Refusal) -> HTTPResponse {
        var meter = appends
        try admit(&meter, user, asked)
        appends = meter
        guard let confirmation = KeyLogWitnesses.read(asked.request.body) else {
            throw Refusal(KeyLogAnswer.invalid("the body is a witness's key, a head and a signature"))
        }
        let logKey = signingKey(asked.app.text).verifyingKey
        do throws(KeyLogError) {
            try witnesses.add(
                confirmation, app: asked.app.text, logKey: logKey, now: UInt64(max(0, asked.now)))
        } catch { throw Refusal(KeyLogAnswer.of(error)) }
        return KeyLogAnswer.success([:])
    }

    private mutating func consistency(_ asked: Asked) throws(Refusal) -> HTTPResponse {
        let (older, newer) = (try Self.number("older", asked), try Self.number("newer", asked))
        let proof = try asking(asked) { (log, _) throws(KeyLogError) in
            try log.consistency(older: older, newer: newer)
        }
        return KeyLogAnswer.success(["proof": .string(Base64.encodeURL(proof.bytes))])
    }

    /// A number of the query; 0 when it is missing.
    private static func number(_ name: StaticString, _ asked: Asked) throws(Refusal) -> UInt64 {
        guard let text = asked.query[name] else { return 0 }
        guard let number = UInt64(text), number < KeyLogLimits.numberBound else {
            throw Refusal(KeyLogAnswer.invalid("\(name) is a whole number below 2^53"))
        }
        return number
    }

    private mutating func signingKey(_ app: String) -> Ed25519.SigningKey {
        if let known = keys[app] { return known }
        let made = key.key(of: app)
        keys[app] = made
        return made
    }

    /// Asks the log about its current state.
    private mutating func asking<Result: Sendable>(
        _ asked: Asked, _ body: (KeyLog, KeyLogHead) throws(KeyLogError) -> Result
    ) throws(Refusal) -> Result {
        let app = asked.app.text
        let key = signingKey(app)
        let time = UInt64(max(0, asked.now))
        let found: Swift.Result<(Result, KeyLogHead), KeyLogError>
        do throws(KeyLogs.Fault) {
            found = try logs.withLog(app, key: key.verifyingKey) { (log) throws(KeyLogError) in
                let head = try log.head(time: time, key: key)
                return (try body(log, head), head)
            }
        } catch { throw Refusal(error) }
        switch found {
        case .success(let (result, head)):
            if keptHeads[app] != head { heads[app] = head }
            return result
        case .failure(let error): throw Refusal(KeyLogAnswer.of(error))
        }
    }

    // MARK: Appending

    /// Appends entries of the token's user and of the handle of its name.
    ///
    /// The token permits a first entry; a rotation is permitted by the signature of the key before it, and a reset only
    /// of a handle whose keys are those of an earlier account with this name.
    private mutating func append(_ user: String, _ asked: Asked) throws(Refusal) -> HTTPResponse {
        var meter = appends
        try admit(&meter, user, asked)
        appends = meter
        // The entries of a guest come with its account, from its owner.
        guard !GuestName.isGuest(user) else { throw Refusal(AccountAnswer.notForGuests) }
        let entries: [KeyLogEntry]
        switch SentEntries.read(asked.request.body) {
        case .success(let sent): entries = sent
        case .failure(let refused): throw Refusal(refused.answer)
        }
        let outcome: Swift.Result<Int, KeyLogError>
        do throws(DirectoryError) {
            outcome = try store.append(entries, of: user, in: asked.app.text, now: asked.now)
            try logs.followCommitted(asked.app.text)
        } catch { throw Refusal(error) }
        switch outcome {
        case .success(let count): return KeyLogAnswer.success(["appended": .number(JSONNumber(Int64(count)))])
        case .failure(let error): throw Refusal(SentEntries.answer(error))
        }
    }
}

extension KeyLogs {
    /// The same as `follow`, for callers whose entries are on disk already: the next use of the log tries again.
    func followCommitted(_ app: String) throws(DirectoryError) {
        do throws(Fault) { try follow(app) } catch { throw DirectoryError(error.description) }
    }
}
