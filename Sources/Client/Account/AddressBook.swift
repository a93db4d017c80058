import ThicketProtocol

/// A postal address in a user's address book.
public struct Address: Codable, Sendable, Hashable, Identifiable {
    /// The object's key in the bucket; generated when the address is created.
    public let id: String
    /// The addressee's full name.
    public var fullName: String
    /// The first line of the street address.
    public var line1: String
    /// The second line of the street address; may be empty.
    public var line2: String
    /// The city.
    public var city: String
    /// The state, province or region; may be empty.
    public var state: String
    /// The postal code; may be empty.
    public var zip: String
    /// The country; may be empty.
    public var country: String
    /// The phone number; may be empty.
    public var phone: String

    /// Makes an address that is not saved yet.
    ///
    /// - Parameters:
    ///   - id: 1–256 characters of `[A-Za-z0-9._%@-]`; nil generates an id.
    ///   - fullName: the full name of the addressee.
    ///   - city: the city.
    ///   - state: the state, province or region; may be empty.
    ///   - line1: the first line of the street address.
    ///   - country: the country; may be empty.
    ///   - zip: the postal code; may be empty.
    ///   - line2: the second line; may be empty.
    ///   - phone: the phone number; may be empty.
    public init(
        id: String? = nil, fullName: String, line1: String, line2: String = "", city: String, state: String = "",
        zip: String = "", country: String = "", phone: String = ""
    ) {
        self.id = id ?? DeviceID.make()
        (self.fullName, self.line1, self.line2, self.city) = (fullName, line1, line2, city)
        (self.state, self.zip, self.country, self.phone) = (state, zip, country, phone)
    }

    /// A member that the object lacks is decoded as an empty string, because other apps may store fewer members.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        func text(_ key: CodingKeys) throws -> String { try members.decodeIfPresent(String.self, forKey: key) ?? "" }
        id = try text(.id)
        (fullName, line1, line2, city) = (try text(.fullName), try text(.line1), try text(.line2), try text(.city))
        (state, zip, country, phone) = (try text(.state), try text(.zip), try text(.country), try text(.phone))
    }
}

/// The addresses of a session's user: a typed view of one bucket.
///
/// A saved address is on this device at once; it is sent when there is a connection. The session renews a token that
/// expires meanwhile, without any help from the app.
public struct AddressBook: Sendable {
    /// The name of the bucket that holds the addresses.
    public static let bucketName = "addressbook"
    /// How long `getAll` waits for the server.
    private static let patience = Duration.seconds(30)

    let session: ClientSession

    /// All addresses, ordered by name. They are the server's newest state with this device's edits applied; without a
    /// connection, the last known state.
    ///
    /// - Throws: `unauthorized` (401) when the user is signed out, `deadline` when a reachable server does not answer,
    ///   `store`, `closed`.
    public func getAll() async throws(ClientError) -> [Address] {
        let bucket = try await bucket()
        try await upToDate(bucket)
        var addresses = [Address]()
        for key in try await bucket.keys() {
            do throws(ClientError) {
                if let address = try await bucket.get(key, as: Address.self) { addresses.append(address) }
            } catch {
                // An object that is not an address, written by another app, must not hide the others; a failing store
                // must throw.
                guard error.code == .invalidValue else { throw error }
            }
        }
        return addresses.sorted { ($0.fullName, $0.id) < ($1.fullName, $1.id) }
    }

    /// One address; nil when it does not exist. Does not wait for the server.
    public func get(_ id: String) async throws(ClientError) -> Address? {
        try await bucket().get(id, as: Address.self)
    }

    /// Adds the address, or changes the one with the same id. Members that other apps keep in the object are preserved.
    public func save(_ address: Address) async throws(ClientError) {
        try await bucket().update(address.id, as: address) { $0 = address }
    }

    /// Removes an address; does nothing when it does not exist.
    public func delete(_ id: String) async throws(ClientError) { try await bucket().remove(id) }

    private func bucket() async throws(ClientError) -> Bucket { try await session.bucket(Self.bucketName) }

    /// Repeats the wait once with the next token when the token expires during it (`ClientSession.calling`).
    private func upToDate(_ bucket: Bucket) async throws(ClientError) {
        if case .offline(.unreachable) = await session.sync.currentStatus { return }
        if case .offline(.requested) = await session.sync.currentStatus { return }
        do throws(ClientError) {
            try await session.calling { _ throws(ClientError) in
                try await bucket.waitUntilSynced(timeout: Self.patience)
            }
        } catch {
            // An address that the server refuses stays in the local store; the bucket's events report the refusal.
            guard error.code == .refused else { throw error }
        }
    }
}

extension ClientSession {
    /// The addresses of the session's user.
    public var addressBook: AddressBook { AddressBook(session: self) }
}
