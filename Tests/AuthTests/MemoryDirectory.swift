import ThicketAuth

/// Partners and users in memory.
final class MemoryDirectory: PartnerDirectory {
    var partners = [String: Partner]()
    var entities = [String: Entity]()
    var devices = [String: Set<String>]()
    /// Partner ids by app.
    var apps = [String: String]()
    var denied = Set<[UInt8]>()
    var bundles = [String: EntityBundle]()
    var isBroken = false

    private func check() throws(DirectoryError) {
        if isBroken { throw DirectoryError("the disk is gone") }
    }

    func partner(apiKey: String) throws(DirectoryError) -> Partner? {
        try check()
        return partners[apiKey]
    }

    func entity(_ id: String) throws(DirectoryError) -> Entity? {
        try check()
        return entities[id]
    }

    func register(
        partner: String, partnerEntity: String, email: String, newID: String, now: Double
    ) throws(DirectoryError) -> Entity {
        try check()
        if let known = entities.values.first(where: {
            $0.partner == partner && $0.partnerEntity.utf8.elementsEqual(partnerEntity.utf8)
        }) {
            return known
        }
        let entity = Entity(id: newID, partner: partner, partnerEntity: partnerEntity)
        entities[newID] = entity
        return entity
    }

    func partner(ofApp app: String) throws(DirectoryError) -> Partner? {
        try check()
        return apps[app].flatMap { id in partners.values.first { $0.id == id } }
    }

    func disabledPartners() throws(DirectoryError) -> [String] { partners.values.filter { !$0.isEnabled }.map(\.id) }

    func devices(of entity: String) throws(DirectoryError) -> [KnownDevice] {
        (devices[entity] ?? []).sorted().map { KnownDevice(id: $0, first: 1_000, last: 2_500) }
    }

    func deny(_ tokens: [DeniedToken], now: Double) throws(DirectoryError) {
        try check()
        denied.formUnion(tokens.map(\.hash))
    }

    func isDenied(_ hash: [UInt8]) throws(DirectoryError) -> Bool { denied.contains(hash) }

    func setKeys(public: [UInt8], sign: [UInt8], of entity: String) throws(DirectoryError) -> Bool {
        try check()
        guard let known = entities[entity] else { return false }
        if known.publicKey == nil, known.signKey == nil {
            entities[entity] = Entity(
                id: known.id, partner: known.partner, partnerEntity: known.partnerEntity, publicKey: `public`,
                signKey: sign)
            return true
        }
        return known.publicKey == `public` && known.signKey == sign
    }

    func saw(device: String, of entity: String, now: Double) throws(DirectoryError) {
        devices[entity, default: []].insert(device)
    }
}
