import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Requests by which an account makes, lists and removes the guests of its links.
enum GuestRequests {
    typealias Asked = AccountService.Asked

    /// Guests of one account, unless an operator chooses another bound.
    static let perAccountMax = 100
    /// Letters of the id of a branch's root.
    private static let rootLetters = 26

    static func answer(_ asked: Asked, _ service: inout AccountService) throws(AccountRefusal) -> HTTPResponse {
        try asked.request.method == "POST" ? add(asked, &service) : list(asked, &service)
    }

    /// Makes a guest. Its keys are made by the owner's device like those of any account; name and user id follow from
    /// them, so the server chooses neither.
    private static func add(_ asked: Asked, _ service: inout AccountService) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        let owner = try service.user(asked).account
        try service.admitSignup(asked)
        let recover = try AccountService.bytes("recover", body)
        let proof = Account.KeyProof(
            stretch: try AccountService.stretch(body),
            verifier: service.secrets.verifier(try AccountService.bytes("a", body)),
            recovery: service.secrets.verifier(recover),
            access: try AccountService.sealed("access", body, max: AccountService.accessBytesMax))
        let bundle = try AccountService.sealed("bundle", body, max: AccountService.bundleBytesMax)
        let name = try Self.guestName(recover, asked)
        let guest = try Self.guest(name, of: owner, body, asked)
        let account = Account(user: name, app: asked.app.text, name: name, proof: .key(proof))
        let entries = try SentEntries.firsts(
            body, of: name, named: name, app: account.app, now: asked.milliseconds)
        guard !entries.isEmpty else { throw .badRequest("entries is required: a guest's keys are in the key log") }
        try service.admitRegistration(asked)
        let max = service.rules.guestsPerAccountMax
        let verdict = try service.directory { (d) throws(DirectoryError) in
            try d.add(guest, account, bundle: bundle, entries: entries, max: max)
        }
        switch verdict {
        case .added: return AccountAnswer.success(Self.described(guest))
        case .nameTaken: throw .nameTaken
        case .tooMany:
            service.notes.limit = .guests
            throw .tooManyGuests(max)
        }
    }

    private static func list(_ asked: Asked, _ service: inout AccountService) throws(AccountRefusal) -> HTTPResponse {
        let owner = try service.user(asked).account
        let guests = try service.directory { (d) throws(DirectoryError) in try d.guests(of: owner.user, in: owner.app) }
        return AccountAnswer.success(["guests": .array(guests.map { .object(Self.described($0)) })])
    }

    /// Removes a guest with its account. Its connections end.
    static func remove(
        _ name: String, _ asked: Asked, _ service: inout AccountService
    ) throws(AccountRefusal) -> HTTPResponse {
        let owner = try service.user(asked).account
        guard GuestName.isGuest(name), let guest = try? UserID(name) else { throw .unknownUser }
        let now = asked.milliseconds
        let isRemoved = try service.directory { (d) throws(DirectoryError) in
            try d.removeGuest(name, of: owner.user, in: owner.app, now: now)
        }
        guard isRemoved else { throw .unknownUser }
        service.notes.ended = guest
        return AccountAnswer.noContent
    }

    /// When the logins of an account have to end.
    ///
    /// - Returns: milliseconds since 1970; nil for an account that is no guest.
    /// - Throws: `linkEnded`.
    static func end(
        of account: Account, _ asked: Asked, _ service: AccountService
    ) throws(AccountRefusal) -> Int64? {
        guard GuestName.isGuest(account.user) else { return nil }
        let guest = try service.directory { (d) throws(DirectoryError) in try d.guest(account.user, in: account.app) }
        guard let guest, asked.milliseconds < guest.expires else { throw .linkEnded }
        return guest.expires
    }

    private static func guestName(_ recover: [UInt8], _ asked: Asked) throws(AccountRefusal) -> String {
        do throws(CryptoError) {
            return GuestName.of(
                try AccountPlace.userID(app: asked.app.text, recoveryDigest: Hash.sha256(recover)))
        } catch { throw .badRequest("the app's name is too long") }
    }

    private static func guest(
        _ name: String, of owner: Account, _ body: AccountBody, _ asked: Asked
    ) throws(AccountRefusal) -> Guest {
        let word = body.text("kind") ?? ""
        guard let kind = Guest.Kind.allCases.first(where: { $0.word == word }) else {
            throw .badRequest("kind is deposit or read")
        }
        guard let root = body.text("root"), root.utf8.count == rootLetters,
            root.utf8.allSatisfy({ (0x61...0x7A).contains($0) || (0x32...0x37).contains($0) })
        else { throw .badRequest("root is the id of the branch's root: \(rootLetters) letters of base32") }
        let days = try number("days", body, Guest.Bounds.days, usual: Guest.Bounds.daysUsual)
        let isDeposit = kind == .deposit
        let deposits = try number("deposits", body, Guest.Bounds.deposits, usual: 1)
        let bytes = try number("bytes", body, Guest.Bounds.bytes, usual: Guest.Bounds.bytesUsual)
        return Guest(
            user: name, app: owner.app, owner: owner.user, root: root, kind: kind, created: asked.milliseconds,
            expires: asked.milliseconds + days * Guest.Bounds.day, depositsMax: isDeposit ? deposits : 0,
            bytesMax: isDeposit ? bytes : 0)
    }

    private static func number(
        _ name: String, _ body: AccountBody, _ range: ClosedRange<Int64>, usual: Int64
    ) throws(AccountRefusal) -> Int64 {
        guard body.has(name) else { return usual }
        guard let number = body.integer(name), range.contains(number) else {
            throw .badRequest("\(name) is a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private static func described(_ guest: Guest) -> JSONObject {
        [
            "name": .string(guest.user), "kind": .string(guest.kind.word), "root": .string(guest.root),
            "created": .number(JSONNumber(guest.created / 1_000)),
            "expires": .number(JSONNumber(guest.expires / 1_000)),
            "deposits_left": .number(JSONNumber(max(0, guest.depositsMax - guest.deposits))),
            "bytes_left": .number(JSONNumber(max(0, guest.bytesMax - guest.bytes))),
        ]
    }
}
