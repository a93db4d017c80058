import ThicketAuth

/// Partners and users in memory.
final class MemoryDirectory: PartnerDirectory {
    var partners: [String: Partner] = [:]
    var entities: [String: Entity] = [:]
    var devices: [String: Set<String>] = [:]
    var isBroken: Bool = false

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
        if let known: Entity = entities.values.first(where: {
            $0.partner == partner && $0.partnerEntity.utf8.elementsEqual(partnerEntity.utf8)
        }) {
            return known
        }
        let entity: Entity = .init(id: newID, partner: partner, partnerEntity: partnerEntity)
        entities[newID] = entity
        return entity
    }

    func saw(device: String, of entity: String, now: Double) throws(DirectoryError) {
        devices[entity, default: []].insert(device)
    }
}
