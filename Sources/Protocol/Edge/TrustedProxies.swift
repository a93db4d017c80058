/// Proxies whose statements about their clients' addresses are trusted.
public struct TrustedProxies: Sendable, Equatable {
    /// The networks of the trusted proxies. Empty: no proxy is trusted.
    public let networks: [IPNetwork]

    /// Trusts the proxies in `networks`.
    public init(_ networks: [IPNetwork] = []) { self.networks = networks }

    /// Networks in one list at most.
    public static let networksMax = 64

    /// Reads `none` or a list of networks, separated by commas.
    ///
    /// - Returns: the list, or what is wrong with the text.
    public static func parse(_ text: String) -> Result<TrustedProxies, Problem> {
        if text.utf8.elementsEqual("none".utf8) { return .success(.init()) }
        var networks = [IPNetwork]()
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let word = String(decoding: HTTPText.trimmed(Array(part.utf8)[...]), as: UTF8.self)
            guard let network = IPNetwork(word) else {
                let shown = String(String.UnicodeScalarView(word.unicodeScalars.prefix(60)))
                return .failure(
                    Problem(
                        text:
                            "'\(shown)' is neither an address nor a network such as 10.0.0.0/8, whose other bits are 0")
                )
            }
            networks.append(network)
        }
        guard networks.count <= networksMax else {
            return .failure(Problem(text: "names more than \(networksMax) networks"))
        }
        return .success(.init(networks))
    }

    /// What is wrong with a list, as a message to its author.
    public struct Problem: Error, Equatable {
        /// The message.
        public let text: String
    }

    /// Whether no proxy is trusted.
    public var isEmpty: Bool { networks.isEmpty }
    /// Whether the address is that of a trusted proxy.
    public func contains(_ address: IPAddress) -> Bool { networks.contains { $0.contains(address) } }

    /// Entries of `X-Forwarded-For` that are read at most.
    private static let hopsMax = 32

    /// The address of the client that made a request: the peer itself, unless it is a trusted proxy. Each proxy appends
    /// the address of its own peer to `X-Forwarded-For`, so the list is read from the end, and the first address that
    /// is not a trusted proxy is the client's. Entries before it may be forged by the client, and are not read.
    ///
    /// - Parameters:
    ///   - peer: the other end of the connection.
    ///   - fields: the fields of the request.
    public func client(of peer: IPAddress, _ fields: HTTPFields) -> IPAddress {
        guard !isEmpty, contains(peer) else { return peer }
        var client = peer
        var hops = 0
        for field in fields.all.reversed() where field.name.utf8.elementsEqual("x-forwarded-for".utf8) {
            let entries: [Substring] = field.value.split(separator: ",", omittingEmptySubsequences: false)
            for entry in entries.reversed() {
                hops += 1
                // A proxy that wrote no address does not know its client; its own address is used instead.
                guard hops <= Self.hopsMax, let address = Self.address(entry) else { return client }
                client = address
                guard contains(address) else { return address }
            }
        }
        return client
    }

    /// Reads `192.0.2.1` or `2001:db8::1`, and the forms with a port: `192.0.2.1:80`, `[2001:db8::1]:80`.
    private static func address(_ entry: Substring) -> IPAddress? {
        var word = Substring(decoding: HTTPText.trimmed(Array(entry.utf8)[...]), as: UTF8.self)
        if word.utf8.first == UInt8(ascii: "[") {
            guard let end = word.utf8.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            let rest: Substring = word[word.utf8.index(after: end)...]
            guard rest.isEmpty || isPort(rest) else { return nil }
            word = word[word.utf8.index(after: word.startIndex)..<end]
            return word.utf8.contains(UInt8(ascii: ":")) ? IPAddress(word) : nil
        }
        if word.utf8.count(where: { $0 == UInt8(ascii: ":") }) == 1,
            let colon = word.utf8.firstIndex(of: UInt8(ascii: ":"))
        {
            guard isPort(word[colon...]) else { return nil }
            word = word[..<colon]
        }
        return IPAddress(word)
    }

    private static func isPort(_ text: Substring) -> Bool {
        (2...6).contains(text.utf8.count) && text.utf8.first == UInt8(ascii: ":")
            && text.utf8.dropFirst().allSatisfy(HTTPText.isDigit)
    }
}
