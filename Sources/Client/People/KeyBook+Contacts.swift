internal import ThicketCrypto
public import ThicketKeyLog
public import ThicketProtocol

/// Contacts, and what the user of this device decides about them.
extension KeyBook {
    /// The state of a contact's keys on this device.
    public enum Standing: String, Sendable {
        /// The log vouches for them.
        case verified
        /// Both persons have compared the safety number of these keys.
        case compared
        /// The safety number of earlier keys was compared, and each of the keys since was signed by the one before.
        case rotated
        /// New keys wait for `confirm`.
        case needsConfirmation = "needs-confirmation"
        /// The log has broken its rules about this user.
        case alarm
        /// Nothing is known yet.
        case unknown
    }

    /// All contacts in the order of their ids.
    public func contacts() throws(PeopleError) -> [(contact: Contact, standing: Standing)] {
        try read { state in
            state.contacts.values.sorted { $0.user < $1.user }.map { ($0, state.standing($0)) }
        }
    }

    /// Looks an account up by its login name, and makes it a contact.
    ///
    /// - Throws: as `keys(named:)`; `refused` when another account has had the name here, or for 10,000 contacts.
    @discardableResult
    public func addContact(named name: String) async throws(PeopleError) -> PublicKeys {
        try await add(try await keys(named: name), name: name)
    }

    /// Makes an account a contact by its id.
    /// - Throws: as `keys(of:)`; `refused` for 10,000 contacts.
    @discardableResult
    public func addContact(_ user: UserID) async throws(PeopleError) -> PublicKeys {
        try await add(try await keys(of: user), name: nil)
    }

    private func add(_ keys: PublicKeys, name: String?) async throws(PeopleError) -> PublicKeys {
        let contact = Contact(user: keys.user, name: name, added: now())
        let problem = try change { $0.add(contact) }
        if let problem { throw .refused(problem) }
        return keys
    }

    /// Removes a contact with everything that is known of it: its next keys are accepted like first ones. This also is
    /// how a user accepts the server's present keys after an alarm.
    ///
    /// - Returns: whether anything was known.
    @discardableResult
    public func forget(_ user: UserID) throws(PeopleError) -> Bool {
        let text = user.text
        let name = try read { $0.contacts[text]?.name }
        let handle = name.flatMap { try? KeyLogHandle.name(KeyLogHandle.folded($0), app: app) }
        return try change { state in
            let wasKnown = state.contacts[text] != nil || state.reader?.pinnedKeys(of: text) != nil
            state.forget(text, handle: handle)
            return wasKnown
        }
    }

    /// The digits that the two users compare.
    ///
    /// Needs no verified keys: it is what the user compares when keys wait for confirmation.
    ///
    /// - Returns: the number, and the other user's keys that are in it, for `confirm`.
    /// - Throws: as `keys(of:)` when nothing is known of the user.
    public func safetyNumber(with user: UserID) async throws(PeopleError) -> (number: SafetyNumber, keys: PublicKeys) {
        let text = user.text
        let keys: PublicKeys
        switch await fresh(text) {
        case .success(let found), .failure(.needsConfirmation(_, let found)): keys = found
        case .failure(let error):
            guard case .offline = error, let pinned = try read({ $0.reader?.pinnedKeys(of: text) }) else {
                throw error
            }
            keys = pinned
        }
        let own: OwnEntries
        do throws(ClientError) { own = try await readOwn() } catch { throw Self.error(error) }
        let mine = try Self.refusing { () throws(KeyLogError) in try own.keys(as: own.user).current }
        do throws(CryptoError) { return (try SafetyNumber(mine, keys), keys) } catch {
            throw .refused(KeyLogError(.malformed, "a user's name is too long"))
        }
    }

    /// The user of this device has compared the safety number of these keys with the other person.
    ///
    /// - Throws: `refused` when these are not the newest keys: another look-up has brought newer ones.
    public func confirm(_ keys: PublicKeys) throws(PeopleError) {
        let problem = try change { state -> KeyLogError? in
            do throws(KeyLogError) {
                try state.confirm(keys)
                return nil
            } catch { return error }
        }
        if let problem { throw .refused(problem) }
    }

    // MARK: - The log

    /// What this device knows of the log.
    public struct Log: Sendable {
        /// The log's key, 32 bytes; nil before the first look-up.
        public let key: [UInt8]?
        /// The newest head.
        public let head: KeyLogHead?
        /// Time of the latest check of the own entries, milliseconds since 1970.
        public let checked: UInt64?
        /// Users of whom keys are known, names included.
        public let users: Int
        /// Keys of required witnesses, 32 bytes each.
        public let witnesses: [[UInt8]]
        /// Time of the oldest head that these have confirmed last, milliseconds since 1970; nil: none yet.
        public let witnessed: UInt64?
    }

    /// What this device knows of the log.
    public func log() throws(PeopleError) -> Log {
        try read { state in
            Log(
                key: state.reader?.logKey.octets, head: state.reader?.head, checked: state.reader?.selfChecked,
                users: state.reader?.pinCount ?? 0, witnesses: state.witnesses.map(\.octets),
                witnessed: state.witnesses.isEmpty ? nil : state.witnessed)
        }
    }

    /// Alarms with their evidence, the oldest first; also those that were resolved.
    public func alarms() throws(PeopleError) -> [PeopleAlarm] { try read(\.alarms) }

    /// The user of this device declares that the log was begun again or restored from a backup: heads are forgotten.
    /// What is known of users stays, and must be in the log that is shown from now on.
    public func reset() throws(PeopleError) { try change { $0.reset() } }

    /// Requires that a witness has confirmed the log within the last hour for each look-up that counts.
    ///
    /// - Parameter key: 32 bytes.
    /// - Throws: `refused` for an invalid key, and for more than 8.
    public func requireWitness(_ key: [UInt8]) throws(PeopleError) {
        guard let key: Ed25519.VerifyingKey = try? .init(key) else {
            throw .refused(KeyLogError(.malformed, "this is not a key of a witness"))
        }
        let isKept = try change { state in
            guard !state.witnesses.contains(key) else { return true }
            guard state.witnesses.count < PeopleLimits.witnessesMax else { return false }
            state.witnesses.append(key)
            state.witnessed = nil
            return true
        }
        guard isKept else {
            throw .refused(KeyLogError(.tooMany, "at most \(PeopleLimits.witnessesMax) witnesses can be required"))
        }
    }

    /// Requires no witness any more.
    public func dropWitnesses() throws(PeopleError) { try change { ($0.witnesses, $0.witnessed) = ([], nil) } }

    /// Asks the server for the path that would end an alarm about unexplained heads.
    ///
    /// - Returns: whether no fork is left.
    public func explainFork() async throws(PeopleError) -> Bool { try await explain() }
}

extension PeopleState {
    func standing(_ contact: Contact) -> KeyBook.Standing {
        guard let reader, let keys = reader.pinnedKeys(of: contact.user) else { return .unknown }
        let isAlarmed = alarms.contains { $0.isOpen && $0.evidence.user == contact.user }
        if isAlarmed { return .alarm }
        if reader.isAwaiting(contact.user) { return .needsConfirmation }
        guard let compared = contact.compared else { return .verified }
        // Keys behind a reset are confirmed, which is a comparison.
        return compared == keys.identity ? .compared : .rotated
    }

    /// - Returns: why the contact cannot be added; nil: it is there now.
    mutating func add(_ contact: Contact) -> KeyLogError? {
        if let name = contact.name {
            let folded = KeyLogHandle.folded(name)
            let other = contacts.values.first {
                $0.user != contact.user && $0.name.map { KeyLogHandle.folded($0) == folded } ?? false
            }
            if let other {
                return KeyLogError(
                    .otherUser, "the name belonged to another account (\(other.user)): remove that contact first")
            }
        }
        guard contacts[contact.user] != nil || contacts.count < PeopleLimits.contactsMax else {
            return KeyLogError(.tooMany, "there are \(PeopleLimits.contactsMax) contacts, which is the maximum")
        }
        let known = contacts[contact.user]
        contacts[contact.user] = Contact(
            user: contact.user, name: contact.name ?? known?.name, added: known?.added ?? contact.added,
            compared: known?.compared)
        return nil
    }
}
