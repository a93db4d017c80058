import ThicketProtocol
import ThicketSealedShape

// Checks that a sealed bucket contains only objects that the server cannot read.
extension StoreAuditor {
    /// - Parameter creation: the version that the newest creation made, if the log still has that row.
    func auditSealed(_ entity: EntityRecord, _ state: JSONObject, madeAt creation: Version?) throws(StoreError) {
        guard let born = entity.born, born <= entity.version, born == creation ?? born else {
            throw broken("its head has no valid creation version")
        }
        do {
            try SealedShape.check(key: entity.key.text)
            _ = try SealedShape.check(object: state)
        } catch {
            throw broken("the bucket is sealed, and the object is not: \(error)")
        }
    }
}
