import ThicketProtocol

/// A postal address in a user's address book.
public struct Address: Codable, Sendable, Hashable, Identifiable {
    /// Its key in the bucket; made when the address is added.
    public let id: String
    public var fullName: String
    public var line1: String
    public var line2: String
    public var city: String
    public var state: String
    public var zip: String
    public var country: String
    public var phone: String

    /// - Parameter id: 1–256 of `[A-Za-z0-9._%@-]`; nil: a new one.
    public init(
        id: String? = nil, fullName: String, line1: String, line2: String = "", city: String, state: String = "",
        zip: String = "", country: String = "", phone: String = ""
    ) {
        self.id = id ?? DeviceID.make()
        (self.fullName, self.line1, self.line2, self.city) = (fullName, line1, line2, city)
        (self.state, self.zip, self.country, self.phone) = (state, zip, country, phone)
    }

    /// What is missing in the object is an empty text: other apps may know less of an address.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        func text(_ key: CodingKeys) throws -> String { try members.decodeIfPresent(String.self, forKey: key) ?? "" }
        id = try text(.id)
        (fullName, line1, line2, city) = (try text(.fullName), try text(.line1), try text(.line2), try text(.city))
        (state, zip, country, phone) = (try text(.state), try text(.zip), try text(.country), try text(.phone))
    }
}

/// The addresses of a session's user: a bucket with a type.
///
/// Addresses are on this device at once and sent when there is a connection. A token that ends meanwhile is renewed by
/// the session; nothing here, nor in the app, has to know of it.
public struct AddressBook: Sendable {
    /// The bucket that holds them.
    public static let bucketName = "addressbook"
    /// How long `getAll` waits for the server.
    private static let patience = Duration.seconds(30)

    let session: ClientSession

    /// All addresses, ordered by name: as the server has them, with this device's own edits; without a connection, as
    /// they were known last.
    ///
    /// - Throws: `unauthorized` (401) when the user is signed out, `deadline` when a server that is there does not
    ///   answer, `store`, `closed`.
    public func getAll() async throws(ClientError) -> [Address] {
        let bucket = try await bucket()
        try await upToDate(bucket)
        var addresses = [Address]()
        for key in try await bucket.keys() {
            do throws(ClientError) {
                if let address = try await bucket.get(key, as: Address.self) { addresses.append(address) }
            } catch {
                // What somebody else has put there and is no address does not hide the others; a store that fails does.
                guard error.code == .invalidValue else { throw error }
            }
        }
        return addresses.sorted { ($0.fullName, $0.id) < ($1.fullName, $1.id) }
    }

    /// One address; nil when there is none. Does not wait for the server.
    public func get(_ id: String) async throws(ClientError) -> Address? {
        try await bucket().get(id, as: Address.self)
    }

    /// Adds the address, or changes the one with its id. What other apps keep in the same object stays.
    public func save(_ address: Address) async throws(ClientError) {
        try await bucket().update(address.id, as: address) { $0 = address }
    }

    /// Removes an address; nothing happens when there is none.
    public func delete(_ id: String) async throws(ClientError) { try await bucket().remove(id) }

    private func bucket() async throws(ClientError) -> Bucket { try await session.bucket(Self.bucketName) }

    /// The wrapper at work: a wait that ends because the token has ended is begun again, once, with the next token.
    private func upToDate(_ bucket: Bucket) async throws(ClientError) {
        if case .offline(.unreachable) = await session.sync.currentStatus { return }
        if case .offline(.requested) = await session.sync.currentStatus { return }
        do throws(ClientError) {
            try await session.calling { _ throws(ClientError) in
                try await bucket.waitUntilSynced(timeout: Self.patience)
            }
        } catch {
            // An address that the server does not take stays here and is told by the bucket's events.
            guard error.code == .refused else { throw error }
        }
    }
}

extension ClientSession {
    /// The user's addresses.
    public var addressBook: AddressBook { AddressBook(session: self) }
}
